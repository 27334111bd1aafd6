"""Segments with base offset 100 for the tests of this folder."""

from quire.protocol.records.batch import walk_batches
from quire.storage.indexes.index_file import IndexCache
from quire.storage.log_config import LogConfig
from quire.storage.segment import Segment
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS, batch

CONFIG = LogConfig(index_interval_bytes=200)
INDEX = f"{FOLDER}/00000000000000000100.index"
TIME_INDEX = f"{FOLDER}/00000000000000000100.timeindex"


def new_segment(disk: SimDisk, config: LogConfig = CONFIG) -> Segment:
    return Segment.create(disk, FOLDER, 100, config, IndexCache(), now_ms=NOW_MS)


def reopened(disk: SimDisk) -> Segment:
    path = f"{FOLDER}/00000000000000000100.log"
    return Segment(disk, FOLDER, 100, CONFIG, IndexCache(), now_ms=NOW_MS, size=disk.file_size(path))


def add(segment: Segment, offset: int, *, size: int = 60, timestamp: int = NOW_MS, count: int = 1) -> None:
    values = [bytes(size)] * count
    data = batch(*values, base_offset=offset, timestamp=timestamp, leader_epoch=0)
    segment.append(data, walk_batches(data))


def filled(disk: SimDisk, count: int = 20) -> Segment:
    segment = new_segment(disk)
    for at in range(count):
        add(segment, 100 + 2 * at, count=2, timestamp=NOW_MS + at)
    return segment
