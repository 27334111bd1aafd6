"""The `.index` of a segment: the position of a batch for about every `index.interval.bytes` of the log.

An entry is 8 bytes: the batch's last offset relative to the segment's base (int32), and its position (int32). It has
the last offset of the batch, not the first, because Apache Kafka writes that. So the batch with a given offset begins
at or after the position of the last entry at or below that offset.
"""

from bisect import bisect_left, bisect_right
from struct import Struct

from quire.storage.indexes.index_file import IndexFile

MAX_RELATIVE_OFFSET = 0x7FFFFFFF


class OffsetIndex(IndexFile):
    __slots__ = ()

    ENTRY = Struct(">ii")

    def append(self, last_offset: int, position: int) -> None:
        self.entries.extend(self.ENTRY.pack(last_offset - self.base_offset, position))

    def lookup(self, offset: int) -> tuple[int, int] | None:
        """(last offset, position) of the last indexed batch that ends at or before `offset`, if there is one."""
        entries = self.entries
        slot = bisect_right(range(len(entries) // 8), offset - self.base_offset, key=self._relative_offset) - 1
        return self._entry(slot) if slot >= 0 else None

    def first_from_position(self, position: int) -> tuple[int, int] | None:
        """(last offset, position) of the first indexed batch that begins at or after `position`, if there is one."""
        entries = self.entries
        slot = bisect_left(range(len(entries) // 8), position, key=lambda slot: self._entry(slot)[1])
        return self._entry(slot) if slot < len(entries) // 8 else None

    def last_before_position(self, position: int) -> tuple[int, int] | None:
        """(last offset, position) of the last indexed batch that begins before `position`, if there is one."""
        slot = bisect_left(range(len(self.entries) // 8), position, key=lambda slot: self._entry(slot)[1]) - 1
        return self._entry(slot) if slot >= 0 else None

    def last(self) -> tuple[int, int] | None:
        entry = self.last_entry()
        return (self.base_offset + entry[0], entry[1]) if entry is not None else None

    def truncate_to(self, offset: int) -> None:
        """Drops entries of batches that end at or after `offset`."""
        entries = self.entries
        kept = bisect_left(range(len(entries) // 8), offset - self.base_offset, key=self._relative_offset)
        del entries[kept * 8 :]

    def _entry(self, slot: int) -> tuple[int, int]:
        relative, position = self.ENTRY.unpack_from(self.entries, slot * 8)
        return self.base_offset + relative, position

    def _relative_offset(self, slot: int) -> int:
        return int(self.ENTRY.unpack_from(self.entries, slot * 8)[0])
