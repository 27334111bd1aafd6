"""Records that a shard has not appended yet, and how they are put into batches.

Operations that run during an append share the next one. The records of one operation stay together. Records of a
transaction have a batch of their own, and so has the marker that ends one.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quire.coordinators.runtime.record import StateRecord, encode_key, encode_value
from quire.coordinators.runtime.result import WrittenBy
from quire.protocol.records import Record, build_batch

RECORD_OVERHEAD_BYTES = 32
"""An upper bound of what a record has besides key and value."""


class Write(NamedTuple):
    """What one operation appends: its records, or the batch of a marker."""

    number: int
    """Of the operation, in increasing order."""
    records: list[Record]
    size: int
    transaction: WrittenBy | None = None
    marker: bytearray | None = None


class Batch(NamedTuple):
    content: bytearray
    offsets: int
    """The number of offsets in the batch."""
    last_number: int
    """Of the last operation in the batch."""


def encoded(records: Sequence[StateRecord], now_ms: int) -> tuple[list[Record], int]:
    """The encoded records, and an upper bound of their size in bytes."""
    written: list[Record] = []
    size = 0
    for record in records:
        key = encode_key(record.key)
        value = encode_value(record)
        size += len(key) + (0 if value is None else len(value)) + RECORD_OVERHEAD_BYTES
        written.append(Record(0, now_ms, key, value))
    return written, size


class Unsent:
    __slots__ = ("_max_bytes", "writes")

    def __init__(self, max_bytes: Callable[[], int]) -> None:
        self._max_bytes = max_bytes
        self.writes: deque[Write] = deque()
        """In the order of their operations."""

    def next_batch(self) -> Batch:
        write = self.writes.popleft()
        if write.marker is not None:
            return Batch(write.marker, 1, write.number)
        if write.transaction is not None:
            producer_id, epoch = write.transaction
            content = build_batch(write.records, producer_id=producer_id, producer_epoch=epoch, transactional=True)
            return Batch(content, len(write.records), write.number)
        records, size, last = write.records, write.size, write.number
        while self.writes and self._may_join(size, self.writes[0]):
            write = self.writes.popleft()
            records, size, last = records + write.records, size + write.size, write.number
        return Batch(build_batch(records), len(records), last)

    def _may_join(self, size: int, write: Write) -> bool:
        return write.transaction is None and write.marker is None and size + write.size <= self._max_bytes()
