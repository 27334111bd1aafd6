"""The contents of a fetch response as a consumer sees them: the visible records, and the markers between them.

A read_committed response also contains aborted records, up to the last stable offset, and a list of aborted
transactions. The consumer filters with it: from the first offset of an aborted transaction on, it drops the records of
that producer until the marker.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from quire.protocol.messages.fetch import AbortedTransaction
from quire.protocol.records import BatchHeader, ControlRecordType, Record, control_type

MARKER_PREFIX = b"marker:"


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a producer's transaction in a partition."""

    producer_id: int
    producer_epoch: int
    commits: bool

    @property
    def value(self) -> bytes:
        """Its value in the ledger, among the values of records."""
        word = "commit" if self.commits else "abort"
        return MARKER_PREFIX + f"{word}:{self.producer_id}:{self.producer_epoch}".encode()


def marker_of(value: bytes) -> Marker | None:
    if not value.startswith(MARKER_PREFIX):
        return None
    _, word, producer_id, epoch = value.decode().split(":")
    return Marker(int(producer_id), int(epoch), word == "commit")


def as_marker(header: BatchHeader, record: Record) -> Record:
    """A control record, with a value that a ledger can keep."""
    commits = control_type(record) is ControlRecordType.COMMIT
    marker = Marker(header.producer_id, header.producer_epoch, commits)
    return Record(record.offset, record.timestamp, None, marker.value)


class Filter:
    """Filters one answer to a read_committed reader, batch by batch in order."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._upcoming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, None] = {}

    def shows(self, header: BatchHeader) -> bool:
        while self._upcoming and self._upcoming[-1].first_offset <= header.last_offset:
            self._aborted[self._upcoming.pop().producer_id] = None
        if header.is_control:
            self._aborted.pop(header.producer_id, None)
            return False
        return not (header.is_transactional and header.producer_id in self._aborted)
