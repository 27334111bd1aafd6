"""The segments of one log, in order; the last one is active."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import is_not

from quire.storage.segment import Segment


class Segments:
    __slots__ = ("_bases", "_segments", "active")

    def __init__(self, segments: list[Segment]) -> None:
        assert segments, "a log has at least one segment"
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, slot: int) -> Segment:
        return self._segments[slot]

    def slot_of(self, offset: int) -> int:
        """The slot of the segment that contains `offset`: the last one that begins at or before it, or the first."""
        if offset >= self.active.base_offset:
            return len(self._segments) - 1
        return max(bisect_right(self._bases, offset) - 1, 0)

    def find(self, offset: int, *, in_job: bool = False) -> tuple[Segment, int]:
        """The segment and position of the first batch that ends at or after `offset`, or where it would be.

        With `in_job`, NotCheckedError says that a job has to rebuild the indexes of the segment first.
        """
        slot = self.slot_of(offset)
        segment = self._segments[slot]
        if segment.size and offset == segment.base_offset:
            return segment, 0
        found = segment.find(offset, in_job=in_job)
        if found is not None:
            return segment, found[0]
        # Compaction removed the offset and all that followed it in its segment.
        later = (segment for segment in self._segments[slot + 1 :] if segment.size)
        return next(((following, 0) for following in later), (self.active, self.active.size))

    def base_after(self, segment: Segment, end_offset: int) -> int:
        """The base offset of the segment after `segment`; the log's end offset if it is the last."""
        slot = bisect_right(self._bases, segment.base_offset)
        return self._bases[slot] if slot < len(self._bases) else end_offset

    def between(self, start_offset: int, end_offset: int) -> list[Segment]:
        """The segments that contain offsets from `start_offset` up to, not including, `end_offset`."""
        if start_offset >= end_offset:
            return []
        return self._segments[self.slot_of(start_offset) : self.slot_of(end_offset - 1) + 1]

    def from_offset(self, offset: int) -> list[Segment]:
        """The segments from the one that contains `offset` on."""
        return self._segments[self.slot_of(offset) :]

    def add(self, segment: Segment) -> None:
        assert segment.base_offset > self.active.base_offset, f"{segment} does not follow {self.active}"
        self._segments.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def drop_before(self, offset: int) -> list[Segment]:
        """Removes the segments that end at or before `offset`, oldest first; the active one always stays."""
        return self._take(0, self.slot_of(offset))

    def drop_from(self, offset: int) -> list[Segment]:
        """Removes the segments that begin at or after `offset`, newest first; the first one always stays."""
        kept = max(bisect_right(self._bases, offset - 1), 1)
        return self._take(kept, len(self._segments))[::-1]

    def replace_all(self, segment: Segment) -> list[Segment]:
        """Replaces all segments by a new one; returns the old ones, newest first."""
        dropped = self._segments[::-1]
        self._segments, self._bases, self.active = [segment], [segment.base_offset], segment
        return dropped

    def replace(self, old: list[Segment], new: Segment) -> bool:
        """Replaces adjacent segments by `new`; returns False if one of them is no longer here."""
        start = bisect_left(self._bases, old[0].base_offset)
        stop = start + len(old)
        if stop >= len(self._segments) or any(map(is_not, self._segments[start:stop], old)):
            return False
        self._segments[start:stop] = [new]
        self._bases[start:stop] = [new.base_offset]
        return True

    def _take(self, start: int, stop: int) -> list[Segment]:
        taken = self._segments[start:stop]
        del self._segments[start:stop], self._bases[start:stop]
        self.active = self._segments[-1]
        return taken
