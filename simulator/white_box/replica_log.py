"""The log of one replica, read from its disk without disturbing the disk's faults."""

from collections.abc import Iterator
from typing import NamedTuple

from quire.protocol.records import BatchHeader, Record, decode_batch, walk_batches
from quire.replication.partition import Partition
from simulator.checks.read_committed import as_marker
from simulator.disk import SimDisk
from simulator.white_box.committed_check import BatchSeen

SEGMENT = ".log"


class Position(NamedTuple):
    """How far a log has been read: a segment, and a position in it."""

    segment: str
    position: int


def batches_from(
    disk: SimDisk, folder: str, position: Position | None
) -> Iterator[tuple[BatchHeader, memoryview, Position]]:
    """Each batch from `position` on (None, or gone: the start), with the bytes it is in and the position after it."""
    segments = [name for name in disk.peek_names(folder) if name.endswith(SEGMENT)]
    if position is None or position.segment not in segments:
        position = Position(segments[0], 0) if segments else Position("", 0)
    for segment in segments:
        if segment < position.segment:
            continue
        start = position.position if segment == position.segment else 0
        content = memoryview(disk.peek(f"{folder}/{segment}", start))
        at = 0
        for header in walk_batches(content):
            at += header.size
            yield header, content, Position(segment, start + at)


def seen(header: BatchHeader) -> BatchSeen:
    return BatchSeen(header.base_offset, header.last_offset, header.leader_epoch, header.crc)


def records_of(disk: SimDisk, partition: Partition) -> Iterator[tuple[BatchHeader, Record]]:
    """Every record of a replica's log, transaction markers as records with a special value."""
    for header, content, _ in batches_from(disk, partition.log.path, None):
        if header.last_offset < partition.log.start_offset:
            continue
        for record in decode_batch(content, header):
            yield header, as_marker(header, record) if header.is_control else record
