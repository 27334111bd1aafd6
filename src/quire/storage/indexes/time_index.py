"""The `.timeindex` of a segment: the highest timestamp up to an offset.

An entry is 12 bytes: a timestamp (int64), which is the highest of the segment up to and including a batch, and the last
offset of that batch relative to the segment's base (int32). Timestamps in the index only rise, although those of
records may not. So every record before the batch of an entry has a timestamp at or below that of the entry. The last
entry of a completed segment has its highest timestamp.
"""

from bisect import bisect_left, bisect_right
from struct import Struct

from quire.storage.indexes.index_file import IndexFile

NO_TIMESTAMP = -1


class TimeIndex(IndexFile):
    __slots__ = ()

    ENTRY = Struct(">qi")

    def is_full(self, limit_bytes: int) -> bool:
        # One more entry must fit: the one that is added when the segment is completed.
        return len(self.entries) + 2 * 12 > limit_bytes

    def append(self, timestamp: int, offset: int) -> bool:
        """Adds an entry unless the index has that timestamp or a higher one; returns whether it did."""
        if timestamp <= self.last()[0]:
            return False
        self.entries.extend(self.ENTRY.pack(timestamp, offset - self.base_offset))
        return True

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """(timestamp, offset) of the last entry at or below `timestamp`; -1 and the segment's base if there is none."""
        entries = self.entries
        slot = bisect_right(range(len(entries) // 12), timestamp, key=self._timestamp) - 1
        return self._entry(slot) if slot >= 0 else (NO_TIMESTAMP, self.base_offset)

    def last(self) -> tuple[int, int]:
        entry = self.last_entry()
        return (entry[0], self.base_offset + entry[1]) if entry is not None else (NO_TIMESTAMP, self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Drops entries of batches that end at or after `offset`."""
        entries = self.entries
        kept = bisect_left(range(len(entries) // 12), offset - self.base_offset, key=self._relative_offset)
        del entries[kept * 12 :]

    def _entry(self, slot: int) -> tuple[int, int]:
        timestamp, relative = self.ENTRY.unpack_from(self.entries, slot * 12)
        return timestamp, self.base_offset + relative

    def _timestamp(self, slot: int) -> int:
        return int(self.ENTRY.unpack_from(self.entries, slot * 12)[0])

    def _relative_offset(self, slot: int) -> int:
        return int(self.ENTRY.unpack_from(self.entries, slot * 12)[1])
