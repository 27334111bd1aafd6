"""Replicas made by hand: a log on a simulated disk, and as much of a partition as the checks look at."""

from types import SimpleNamespace
from typing import cast

from quire.protocol.records import Record, build_batch
from quire.replication.partition import Partition
from simulator.disk import SimDisk

FOLDER = "/data/t-0"

Batches = list[tuple[int, int, list[bytes]]]
"""Offset, leader epoch and values of each; a value is also its record's key."""


def disk_with(batches: Batches) -> SimDisk:
    disk = SimDisk()
    disk.make_dirs(FOLDER)
    file = disk.open(f"{FOLDER}/{0:020}.log", create=True)
    position = 0
    for offset, epoch, values in batches:
        records = [Record(0, 0, value[:1], value) for value in values]
        content = bytes(build_batch(records, base_offset=offset, leader_epoch=epoch))
        file.pwritev([content], position)
        position += len(content)
    return disk


def replica(end_offset: int, *, high_watermark: int = 0, start_offset: int = 0, leader_epoch: int = 1) -> Partition:
    log = SimpleNamespace(path=FOLDER, start_offset=start_offset, end_offset=end_offset)
    fields = SimpleNamespace(log=log, high_watermark=high_watermark, leader_epoch=leader_epoch, leader=None)
    return cast(Partition, fields)
