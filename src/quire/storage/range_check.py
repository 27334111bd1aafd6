"""Bytes that this process has neither written nor scanned are checked once before they are served for the first time.

A segment that was found on disk after a clean stop may have been damaged since, and only its checksums would tell. So a
read that reaches into such a range gets `NotCheckedError` instead of a slice. Its `RangeCheck` runs in a job, which
also brings the bytes into memory, then `CheckedRanges` knows how far they are intact, and the read can be repeated:

    log.read(...)               raises NotCheckedError(check)
    check.run()                 in a job: compares checksums, some way ahead
    check.finish()              on the loop
    log.read(...)               what is intact; at a damaged batch CORRUPT_MESSAGE, as damage anywhere else

What comes before a damaged batch and what an index leads to behind it is served as ever.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Protocol, TypeVar

from quire.protocol.records.batch import BatchHeader
from quire.seams import File
from quire.storage import segment_scan
from quire.storage.batch_scan import DamagedBatchError
from quire.storage.batch_walk_native import BatchWalk
from quire.storage.end_marker import EndMarker

T = TypeVar("T")

AHEAD_BYTES = 4 << 20
"""How much is checked at once: who reads on finds it done."""

_NO_EPOCH = -1
_MAX_OFFSET = (1 << 63) - 1


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
    checked: "CheckedRanges | None"

    @property
    def file(self) -> File: ...

    def report(self, damage: DamagedBatchError) -> None: ...


class RangeCheck:
    """A range of a segment from a batch's beginning on, and what was found there."""

    __slots__ = (
        "_allow_gaps",
        "_end",
        "_enough",
        "_file",
        "_gap",
        "_offset",
        "_segment",
        "damage",
        "position",
        "until",
    )

    def __init__(self, segment: Checkable, position: int, offset: int, size: int, *, allow_gaps: bool) -> None:
        """`offset` is the one that was asked for: the batch at `position` holds it, or is the first behind it."""
        self._segment = segment
        self._file = segment.file
        self._end = segment.unchecked_end
        self._enough = min(position + max(size, AHEAD_BYTES), self._end)
        self._offset = offset
        self._allow_gaps = allow_gaps
        self._gap: tuple[int, int] | None = None
        """The last batch that left some offsets out: where it begins in the file, and at which offset it ends."""
        self.position = position
        self.until = position
        """Where the first batch begins that is not known to be intact."""
        self.damage: DamagedBatchError | None = None

    def __repr__(self) -> str:
        return f"{self._file.path} from position {self.position} on"

    def run(self) -> None:
        """Blocks."""
        walk = BatchWalk(
            self._segment.base_offset,
            index_interval=self._end,
            next_offset=self._offset,
            end_limit=_MAX_OFFSET,
            gaps_before=_MAX_OFFSET if self._allow_gaps else 0,
            leader_epoch=_NO_EPOCH,
        )
        try:
            self.until = segment_scan.scan(self._file, self.position, self._end, walk, self, enough=self._enough)
        except DamagedBatchError as damage:
            reason = f"{damage.reason} (at offset {walk.next_offset})"
            self.damage = DamagedBatchError(self._file.path, damage.position, reason)
            self.until = damage.position

    def finish(self) -> None:
        """What was found counts from now on, as far as the segment has not been cut meanwhile."""
        segment = self._segment
        if self.position >= segment.unchecked_end:
            return
        if segment.checked is None:
            segment.checked = CheckedRanges()
        segment.checked.add(self.position, min(self.until, segment.unchecked_end))
        if self.damage is not None and self.until < segment.unchecked_end:
            segment.report(self.damage)
        if segment.checked.cover(segment.unchecked_end):
            segment.unchecked_end = 0
            segment.checked = None

    # What the scan meets

    def meet(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        """Offset and epoch are outside the checksum, but rise from batch to batch.

        Where they step back behind a gap, the batch that left the gap has the wrong offset, not the one behind it.
        """
        first = position == self.position
        if header.base_offset < expected_offset and not (first and expected_offset <= header.last_offset):
            if self._gap is not None and self._gap[1] == expected_offset:
                raise DamagedBatchError(self._file.path, self._gap[0], f"its offset is above {header.base_offset}")
            return f"offset {header.base_offset} follows {expected_offset - 1}"
        if header.base_offset > expected_offset:
            self._gap = position, header.next_offset
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


class CheckedRanges:
    """What of a segment has been checked: ranges that begin and end with a batch, and damaged batches between them."""

    __slots__ = ("_damages", "_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._damages: dict[int, DamagedBatchError] = {}

    def intact_from(self, position: int) -> int:
        """Where the intact range ends that `position` is in; `position` itself if it is in none.

        DamagedBatchError if a damaged batch begins there.
        """
        if position in self._damages:
            raise self._damages[position]
        slot = bisect_right(self._starts, position) - 1
        return max(self._ends[slot], position) if slot >= 0 else position

    def add(self, start: int, end: int) -> None:
        if start >= end:
            return
        first = bisect_right(self._ends, start - 1)
        last = bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def damaged(self, damage: DamagedBatchError) -> bool:
        """Returns whether this is news."""
        known = damage.position in self._damages
        self._damages[damage.position] = damage
        return not known

    def cover(self, end: int) -> bool:
        return not self._damages and self._starts[:1] == [0] and self._ends[0] >= end

    def truncate_to(self, size: int) -> None:
        kept = bisect_right(self._starts, size - 1)
        del self._starts[kept:], self._ends[kept:]
        self._ends = [min(end, size) for end in self._ends]
        self._damages = {position: damage for position, damage in self._damages.items() if position < size}
