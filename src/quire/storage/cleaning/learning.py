"""The first half of a round: the last offset of each key in the dirty part of a log.

Aborted records are not learned: what they would supersede stays.
"""

from collections.abc import Iterator, Sequence

from quire.protocol.records.batch import BatchHeader
from quire.protocol.records.reader import records_section
from quire.seams import Disk
from quire.storage.cleaning import stops
from quire.storage.cleaning.learn_native import learn_batches, learn_records
from quire.storage.cleaning.offset_map import make_table
from quire.storage.cleaning.round import Round
from quire.storage.cleaning.transactions import CleanedTransactions
from quire.storage.cleaning.walk import Walk
from quire.storage.transaction_index import AbortedTransaction


class Learning:
    __slots__ = ("_full", "_this", "_transactions", "_walk", "latest_offset", "table")

    def __init__(self, disk: Disk, this: Round, aborted: Sequence[AbortedTransaction]) -> None:
        self._this = this
        self._walk = Walk(disk, this.limits.buffer_bytes)
        self._transactions = CleanedTransactions(aborted)
        self._full = False
        # There are no more keys than offsets.
        keys_max = this.first_uncleanable_offset - this.first_dirty_offset
        self.table = make_table(keys_max, this.limits.table_bytes, this.limits.table_load_factor, this.seed)
        self.latest_offset = this.first_dirty_offset - 1
        """Up to here the table has every key of the dirty part."""

    def run(self) -> Iterator[int]:
        """Yields how many bytes were read, now and then."""
        this = self._this
        for segment, end_offset in zip(this.segments, this.end_offsets, strict=True):
            if end_offset <= this.first_dirty_offset:
                continue
            for size_bytes in self._walk.through(segment.path, segment.size, self._take):
                yield size_bytes
                if self._full:
                    return
            # Offsets that are missing at a segment's end were cleaned away before.
            self.latest_offset = max(self.latest_offset, end_offset - 1)

    def _take(self, data: memoryview, filled: int) -> int:
        position = 0
        while True:
            status, position, learned = learn_batches(self.table, data, position, filled, self._this.first_dirty_offset)
            self.latest_offset = max(self.latest_offset, learned)
            if status == stops.SPECIAL:
                header = self._walk.checked_header(position)
                status = self._learn_special(data, header)
                if status == stops.END:
                    position = header.end
                    continue
            if status == stops.DAMAGED:
                raise self._walk.damage(position, "its checksum does not match, or its records are broken")
            self._full = status == stops.FULL
            return filled if self._full else position

    def _learn_special(self, data: memoryview, header: BatchHeader) -> int:
        if header.is_control:
            self._transactions.on_control_batch(header, data)
        elif not self._transactions.on_batch(header) and header.record_count:
            section = records_section(data, header, self._this.limits.decompressed_bytes)
            status, learned = learn_records(
                self.table, section, header.record_count, header.base_offset, self._this.first_dirty_offset
            )
            self.latest_offset = max(self.latest_offset, learned)
            if status != stops.END:
                return status
        self.latest_offset = max(self.latest_offset, header.last_offset)
        return stops.END
