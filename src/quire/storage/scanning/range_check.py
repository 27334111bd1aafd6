"""Bytes that this process has neither written nor scanned are checked once before they are served for the first time.

A segment that was found on disk after a clean stop may have been damaged since, which only its checksums show. So a
read of such bytes raises `NotCheckedError` instead of returning a slice. Its `RangeCheck` runs in a job, which also
reads the bytes into the page cache. Then `CheckedRanges` has the result, and the read can be repeated:

    log.read(...)               raises NotCheckedError(check)
    check.run()                 in a job: compares checksums, also of some bytes beyond the read
    check.finish()              on the event loop
    log.read(...)               returns what is intact; CORRUPT_MESSAGE at a damaged batch

Batches before a damaged one are served, and so are later ones that the index leads to.

No checksum covers a batch's offset and leader epoch, but both only rise, and no offset reaches into the next segment.
So they are compared with those of the batches around it, and a check begins some batches before the requested offset. A
gap by itself is not damage, whatever the topic's settings are, because the topic may have been compacted earlier. But
the batch after a gap must be confirmed by the one that follows it.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from quire.protocol.records.batch import BatchHeader
from quire.seams import File
from quire.storage.leader_epochs import NO_EPOCH, LeaderEpochs
from quire.storage.producers.end_marker import EndMarker
from quire.storage.scanning import segment_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.batch_walk_native import BatchWalk
from quire.storage.scanning.checked_ranges import CheckedRanges

T = TypeVar("T")

AHEAD_BYTES = 4 << 20
"""How much is checked at once, so that a reader which continues finds the next bytes checked."""


class _Doubt(NamedTuple):
    """A batch whose offset or epoch is right unless the next one contradicts it."""

    position: int
    before: int
    """The offset or epoch before it."""
    next_offset: int
    reason: str


class ReadCheck(Protocol):
    """What a job has to do before a read can be repeated: a `RangeCheck`, or the rebuilding of indexes."""

    @property
    def subject(self) -> str:
        """What is checked or rebuilt, in words; equal for two checks that do the same work."""
        ...

    def run(self) -> None:
        """Blocks: runs in a job."""

    def finish(self) -> None:
        """Called on the event loop after `run`."""


class NotCheckedError(Exception):
    """The requested bytes have to be checked first."""

    def __init__(self, check: ReadCheck) -> None:
        super().__init__(f"{check.subject} has not been checked yet")
        self.check = check


class Checkable(Protocol):
    """The part of a segment's interface that a check needs."""

    base_offset: int
    unchecked_end: int
    """Bytes from here on are known to be intact, those before only where `checked` says so."""
    checked: CheckedRanges | None

    @property
    def file(self) -> File: ...

    def report(self, damage: DamagedBatchError) -> None: ...


class RangeCheck:
    """The check of a range of a segment that begins with a batch, and its result."""

    __slots__ = (
        "_end",
        "_enough",
        "_epochs",
        "_file",
        "_first_offset",
        "_gap",
        "_indexed_offset",
        "_last_epoch",
        "_lead_in",
        "_limit",
        "_lost",
        "_new_epoch",
        "_offset",
        "_scanned_from",
        "_segment",
        "damage",
        "position",
        "until",
    )

    def __init__(
        self,
        segment: Checkable,
        position: int,
        offset: int,
        size: int,
        *,
        lead_in: tuple[int, int],
        limit: int,
        epochs: LeaderEpochs,
    ) -> None:
        """`offset` was requested: the batch at `position` contains it, or is the first after it.

        `lead_in` is an index entry before it: a batch's last offset and its position. No batch reaches `limit`.
        """
        self._segment = segment
        self._file = segment.file
        self._end = segment.unchecked_end
        self._enough = min(position + max(size, AHEAD_BYTES), self._end)
        self._offset = offset
        self._indexed_offset, self._lead_in = lead_in
        self._limit = limit
        self._epochs = LeaderEpochs(epochs.entries)  # The log's own may change while this runs.
        self._scanned_from = self._lead_in
        self._gap: _Doubt | None = None
        self._new_epoch: _Doubt | None = None
        self._first_offset = offset
        self._last_epoch = NO_EPOCH
        self._lost: DamagedBatchError | None = None
        """Damage right before the range, which may affect the batch with the requested offset."""
        self.position = position
        self.until = position
        """Where the first batch begins that is not known to be intact."""
        self.damage: DamagedBatchError | None = None

    @property
    def subject(self) -> str:
        return f"{self._file.path} from position {self.position} on"

    def run(self) -> None:
        """Blocks."""
        damage = self._scan(self._lead_in, self._segment.base_offset)
        if damage is not None and damage.position < self.position:
            # Check the requested batches without those before them.
            self._lost = damage
            damage = self._scan(self.position, self._offset)
        self.damage = damage

    def _scan(self, start: int, offset: int) -> DamagedBatchError | None:
        """Scans from `start`, where a batch begins that ends at or after `offset`, as far as needed; returns damage."""
        self._scanned_from = start
        self._gap = self._new_epoch = None
        self._last_epoch = NO_EPOCH
        walk = BatchWalk(
            self._segment.base_offset,
            index_interval=self._end,
            next_offset=offset,
            end_limit=self._limit,
            gaps_before=0,
            leader_epoch=NO_EPOCH,
        )
        try:
            if segment_scan.scan(self._file, start, self._end, walk, self, enough=self.position) != self.position:
                raise DamagedBatchError(self._file.path, start, f"it does not lead to position {self.position}")
            reached = segment_scan.scan(self._file, self.position, self._end, walk, self, enough=self._enough)
            while reached < self._end and self._contradicts(walk.next_offset):
                reached = segment_scan.scan(self._file, reached, self._end, walk, self, enough=reached + 1)
            new = self._new_epoch
            if new is not None and new.next_offset == walk.next_offset and new.position > self._scanned_from:
                raise DamagedBatchError(self._file.path, new.position, new.reason)
        except DamagedBatchError as damage:
            self.until = damage.position
            if any(doubt is not None and doubt.position == damage.position for doubt in (self._gap, self._new_epoch)):
                return damage
            return DamagedBatchError(
                self._file.path, damage.position, f"{damage.reason} (at offset {walk.next_offset})"
            )
        self.until = reached
        return None

    def _contradicts(self, next_offset: int) -> bool:
        """Whether the last batch, which ends before `next_offset`, must be confirmed by the next one."""
        return any(doubt is not None and doubt.next_offset == next_offset for doubt in (self._gap, self._new_epoch))

    def finish(self) -> None:
        """Records the result in the segment, as far as that was not truncated meanwhile."""
        segment = self._segment
        if self.position >= segment.unchecked_end:
            return
        if segment.checked is None:
            segment.checked = CheckedRanges()
        segment.checked.add(self.position, min(self.until, segment.unchecked_end))
        if self._lost is not None:
            segment.checked.lost_before(self.position, self._first_offset, self._lost)
            # If no batch begins at the index entry, the index itself may be wrong, which is not worth an error message.
            if self._lost.position > self._lead_in or self._first_offset > self._offset:
                segment.report(self._lost)
        if self.damage is not None and self.until < segment.unchecked_end:
            segment.report(self.damage)
        if segment.checked.cover(segment.unchecked_end):
            segment.unchecked_end = 0
            segment.checked = None

    # --- What the scan meets

    def visit(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        """Offset and epoch rise from batch to batch.

        Where they step back, either this batch is wrong or the one before it, if that was the one that rose too far.
        """
        first = position == self._scanned_from
        offset = header.base_offset
        if offset < expected_offset and not (first and expected_offset <= header.last_offset):
            gap = self._gap
            if gap is not None and gap.next_offset == expected_offset and gap.before <= offset:
                raise DamagedBatchError(self._file.path, gap.position, gap.reason)
            return f"offset {offset} follows {expected_offset - 1}"
        if first and position == self.position:
            self._first_offset = offset
        # There is no batch to compare the first one with, unless it begins the segment; only the index entry.
        on_its_own = first and position > 0
        if header.last_offset != self._indexed_offset if on_its_own else offset > expected_offset:
            before = self._segment.base_offset if first else expected_offset
            self._gap = _Doubt(position, before, header.next_offset, f"its offset is {offset}, above the next one")
        return self._visit_epoch(header, position, expected_offset)

    def _visit_epoch(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        """The log's epochs are from a file that may be damaged, too: if two batches in a row contradict it, it is."""
        epoch = header.leader_epoch
        if epoch == NO_EPOCH:
            return None
        known = self._epochs.epoch_of(header.base_offset)
        doubt, last = self._new_epoch, self._last_epoch
        if (
            doubt is not None
            and doubt.next_offset == expected_offset
            and epoch != last
            and epoch in (known, doubt.before)
        ):
            raise DamagedBatchError(self._file.path, doubt.position, doubt.reason)
        if epoch < last:
            return f"leader epoch {epoch} follows {last}"
        if epoch != last and epoch != known != NO_EPOCH:
            reason = f"its leader epoch is {epoch}, not {known}"
            self._new_epoch = _Doubt(position, last, header.next_offset, reason)
        self._last_epoch = epoch
        return None

    def visit_producer(self, header: BatchHeader) -> None:
        pass

    def visit_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        pass


def read_checked(read: Callable[[], T]) -> T:
    """Calls `read` until it succeeds, and runs the checks that it needs. Blocks: for tools and tests."""
    while True:
        try:
            return read()
        except NotCheckedError as error:
            error.check.run()
            error.check.finish()
