"""Bytes that this process has neither written nor scanned are checked once before they are served for the first time.

A segment that was found on disk after a clean stop may have been damaged since, and only its checksums would tell. So a
read that reaches into such a range gets `NotCheckedError` instead of a slice. Its `RangeCheck` runs in a job, which
also brings the bytes into memory, then `CheckedRanges` knows how far they are intact, and the read can be repeated:

    log.read(...)               raises NotCheckedError(check)
    check.run()                 in a job: compares checksums, some way ahead
    check.finish()              on the loop
    log.read(...)               what is intact; at a damaged batch CORRUPT_MESSAGE, as damage anywhere else

What comes before a damaged batch and what an index leads to behind it is served as ever.

No checksum covers a batch's offset and leader epoch, but its neighbours do: both only rise, and no offset reaches into
the next segment. So a check begins some batches before what was asked for. A gap is no damage by itself, whatever the
topic's settings: it may be left from when the topic was compacted. A batch behind a gap has to be followed by one that
leaves it where it is.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from quire.protocol.records.batch import BatchHeader
from quire.seams import File
from quire.storage import segment_scan
from quire.storage.batch_scan import DamagedBatchError
from quire.storage.batch_walk_native import BatchWalk
from quire.storage.checked_ranges import CheckedRanges
from quire.storage.end_marker import EndMarker
from quire.storage.leader_epochs import NO_EPOCH, LeaderEpochs

T = TypeVar("T")

AHEAD_BYTES = 4 << 20
"""How much is checked at once: who reads on finds it done."""


class _Doubt(NamedTuple):
    """A batch whose offset or epoch is right if the next one does not contradict it."""

    position: int
    before: int
    """The offset or epoch from which it rose."""
    next_offset: int
    reason: str


class NotCheckedError(Exception):
    """What was to be read has to be checked first."""

    def __init__(self, check: "RangeCheck") -> None:
        super().__init__(f"{check} has not been checked yet")
        self.check = check


class Checkable(Protocol):
    """A segment, as far as this concerns it."""

    base_offset: int
    unchecked_end: int
    """Bytes from here on are known to be intact, those before only where `checked` says so."""
    checked: CheckedRanges | None

    @property
    def file(self) -> File: ...

    def report(self, damage: DamagedBatchError) -> None: ...


class RangeCheck:
    """A range of a segment from a batch's beginning on, and what was found there."""

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
        """`offset` is the one that was asked for: the batch at `position` holds it, or is the first behind it.

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
        """What is damaged right before the range, and may have held the offset that was asked for."""
        self.position = position
        self.until = position
        """Where the first batch begins that is not known to be intact."""
        self.damage: DamagedBatchError | None = None

    def __repr__(self) -> str:
        return f"{self._file.path} from position {self.position} on"

    def run(self) -> None:
        """Blocks."""
        damage = self._scan(self._lead_in, self._segment.base_offset)
        if damage is not None and damage.position < self.position:
            # What is asked for is judged by itself and by what follows it.
            self._lost = damage
            damage = self._scan(self.position, self._offset)
        self.damage = damage

    def _scan(self, start: int, offset: int) -> DamagedBatchError | None:
        """Goes from `start`, where a batch is that ends at or after `offset`, as far as needed; returns any damage."""
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
            while reached < self._end and self._doubts(walk.next_offset):
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

    def _doubts(self, next_offset: int) -> bool:
        """Whether the last batch, which ends before `next_offset`, needs one behind it to be believed."""
        return any(doubt is not None and doubt.next_offset == next_offset for doubt in (self._gap, self._new_epoch))

    def finish(self) -> None:
        """What was found counts from now on, as far as the segment has not been cut meanwhile."""
        segment = self._segment
        if self.position >= segment.unchecked_end:
            return
        if segment.checked is None:
            segment.checked = CheckedRanges()
        segment.checked.add(self.position, min(self.until, segment.unchecked_end))
        if self._lost is not None:
            segment.checked.lost_before(self.position, self._first_offset, self._lost)
            # Where no batch begins, it may be the index that is wrong: that is nothing to be said aloud.
            if self._lost.position > self._lead_in or self._first_offset > self._offset:
                segment.report(self._lost)
        if self.damage is not None and self.until < segment.unchecked_end:
            segment.report(self.damage)
        if segment.checked.cover(segment.unchecked_end):
            segment.unchecked_end = 0
            segment.checked = None

    # What the scan meets

    def meet(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
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
        # The first one, unless it begins the segment, has no batch before it but the index to agree with.
        on_its_own = first and position > 0
        if header.last_offset != self._indexed_offset if on_its_own else offset > expected_offset:
            before = self._segment.base_offset if first else expected_offset
            self._gap = _Doubt(position, before, header.next_offset, f"its offset is {offset}, that behind it less")
        return self._meet_epoch(header, position, expected_offset)

    def _meet_epoch(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        """The log's epochs are from a file, which may be damaged too: against two batches in a row it is wrong."""
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

    def meet_producer(self, header: BatchHeader) -> None:
        pass

    def meet_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        pass


def read_checked(read: Callable[[], T]) -> T:
    """What `read` returns when all it has to be checked for has been, at once, blocking: for tools and tests."""
    while True:
        try:
            return read()
        except NotCheckedError as error:
            error.check.run()
            error.check.finish()
