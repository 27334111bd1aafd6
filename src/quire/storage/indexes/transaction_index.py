"""The `.txnindex` of a segment: the transactions that were aborted by a marker in this segment.

An entry is 34 bytes: a version (int16, 0), the producer id, the transaction's first offset, that of its ABORT marker,
and the last stable offset when that was written (each int64). Markers come in the order of their offsets, so entries
are sorted by the second offset. The last stable offset limits the search of a reader: a transaction that began before
it was decided by then, and cannot be in a later entry.

As in Kafka, a segment without aborted transactions has no such file. So a missing file could also be a lost one, and
readers would see aborted records. Therefore Quire writes the number of entries to another file, `.aborted`, which Kafka
ignores. An index with fewer entries, or with wrong ones, is rebuilt from the log. One with more is right, because Kafka
may have written them. Without the `.aborted` file, a missing index counts as empty, as it does for Kafka. But an empty
index file is rebuilt when a log is opened: Kafka sometimes leaves one behind, but a failing disk or a copy may, too.
"""

from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from quire.storage.file_names import ABORTED_COUNT, TRANSACTION_INDEX
from quire.storage.indexes.index_file import CorruptIndexError, IndexFile
from quire.storage.whole_file import write_whole

VERSION = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the ABORT marker."""
    last_stable_offset: int
    """Every transaction that began before it had ended when the marker was written."""


class TransactionIndex(IndexFile):
    __slots__ = ()

    ENTRY = Struct(">hqqqq")

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return (self._entry(slot) for slot in range(self.count))

    @property
    def paths(self) -> list[str]:
        return [self.path, self._count_path]

    @property
    def _count_path(self) -> str:
        before, _, after = self.path.rpartition(TRANSACTION_INDEX)
        return f"{before}{ABORTED_COUNT}{after}"

    @property
    def is_known_empty(self) -> bool:
        """Whether it is known to be empty without reading the file."""
        return self._entries is not None and not self._entries

    def append(self, aborted: AbortedTransaction) -> None:
        self.entries.extend(self.ENTRY.pack(VERSION, *aborted))

    def overlapping(self, offset: int, upper_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Aborted transactions with offsets from `offset` up to, not including, `upper_offset`.

        Also returns whether these are all; if not, later segments may have more.
        """
        found = []
        for slot in range(self._slot_from(offset), self.count):
            aborted = self._entry(slot)
            if aborted.first_offset < upper_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> bool:
        """Drops entries of markers at or after `offset`; returns whether there were any."""
        entries = self.entries
        kept = self._slot_from(offset) * self.ENTRY.size
        if kept == len(entries):
            return False
        del entries[kept:]
        return True

    def check(self, end_offset: int) -> None:
        """CorruptIndexError unless this can be the index of a segment that ends at `end_offset`."""
        previous = self.base_offset - 1
        for slot in range(self.count):
            version = self.ENTRY.unpack_from(self.entries, slot * self.ENTRY.size)[0]
            aborted = self._entry(slot)
            sensible = (
                version == VERSION
                and aborted.producer_id >= 0
                and 0 <= aborted.first_offset < aborted.last_offset
                and previous < aborted.last_offset < end_offset
                and 0 <= aborted.last_stable_offset <= aborted.last_offset + 1
            )
            if not sensible:
                raise CorruptIndexError(f"{self.path} has a wrong entry at position {slot * self.ENTRY.size}")
            previous = aborted.last_offset

    def write(self) -> None:
        """Writes index and count. The count comes last: an index without a count is used, a count without index is not.

        If the entries are not in memory, they have not changed.
        """
        if self._entries is None:
            return
        if self.entries:
            super().write()
            self._write_count()
            return
        for path in filter(self._disk.exists, self.paths):
            self._disk.remove(path)

    def _write_count(self) -> None:
        write_whole(self._disk, self._count_path, f"{self.count}\n".encode())

    def unpin(self) -> None:
        # An empty index stays in memory, which costs less than an entry in the cache.
        if self._entries:
            super().unpin()
        elif self._entries is None:
            self.pinned = False

    def _read(self) -> bytearray:
        entries = super()._read() if self._disk.exists(self.path) else bytearray()
        count, expected = len(entries) // self.ENTRY.size, self._expected_count()
        if count < expected:
            raise CorruptIndexError(f"{self.path} has {count} aborted transactions of {expected}")
        return entries

    def _expected_count(self) -> int:
        if not self._disk.exists(self._count_path):
            return 0
        content = self._disk.read_file(self._count_path)
        if not content.strip().isdigit():
            raise CorruptIndexError(f"{self._count_path} has no number")
        return int(content)

    def _slot_from(self, offset: int) -> int:
        """The slot of the first entry whose marker is at or after `offset`."""
        return bisect_left(range(self.count), offset, key=lambda slot: self._entry(slot).last_offset)

    def _entry(self, slot: int) -> AbortedTransaction:
        return AbortedTransaction(*self.ENTRY.unpack_from(self.entries, slot * self.ENTRY.size)[1:])
