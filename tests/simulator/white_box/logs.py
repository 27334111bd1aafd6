"""Constructed replicas: a log on a simulated disk, and the parts of a partition that the checks read."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import cast

from quire.protocol.records import Record, build_batch
from quire.replication.partition import Partition
from simulator.disk import SimDisk

FOLDER = "/data/t-0"

Batch = tuple[int, int, list[bytes]]
"""Offset, leader epoch and values; a value's first byte is its record's key."""

Batches = list[Batch]


def disk_with(batches: Batches) -> SimDisk:
    return disk_of(plain(batch) for batch in batches)


def plain(batch: Batch) -> bytes:
    offset, epoch, values = batch
    records = [Record(0, 0, value[:1], value) for value in values]
    return bytes(build_batch(records, base_offset=offset, leader_epoch=epoch))


def disk_of(batches: Iterable[bytes]) -> SimDisk:
    disk = SimDisk()
    disk.make_dirs(FOLDER)
    disk.open(f"{FOLDER}/{0:020}.log", create=True).pwritev(list(batches), 0)
    return disk


class _Fields(SimpleNamespace):
    """Is a key of its own, as a partition is."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def replica(
    end_offset: int, *, high_watermark: int = 0, start_offset: int = 0, leader_epoch: int = 1, compact: bool = False
) -> Partition:
    config = SimpleNamespace(compact=compact)
    log = SimpleNamespace(path=FOLDER, start_offset=start_offset, end_offset=end_offset, config=config)
    fields = _Fields(log=log, high_watermark=high_watermark, leader_epoch=leader_epoch, leader=None)
    return cast(Partition, fields)
