"""What a fetch answer holds, as a consumer sees it: which records it is shown, and the markers between them.

A reader of committed records gets the others too, up to the last stable offset, with a list of aborted transactions by
which it leaves out what belongs to them: from the first offset of one on, its producer's records, until its marker.
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
        """How it stands in the ledger, among the values of records."""
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
    """Of one answer to a reader of committed records: its batches in order."""

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
