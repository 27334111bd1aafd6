"""The first half of a cleaning run: maps each key in the dirty part of a log to its last offset.

Aborted records are not mapped, because they must not supersede older records.
"""

from collections.abc import Iterator, Sequence

from quire.protocol.records.batch import BatchHeader
from quire.protocol.records.reader import records_section
from quire.seams import Disk
from quire.storage.cleaning import stops
from quire.storage.cleaning.cleaning_run import CleaningRun
from quire.storage.cleaning.offset_map import make_table
from quire.storage.cleaning.offset_map_builder_native import map_batches, map_records
from quire.storage.cleaning.transactions import CleanedTransactions
from quire.storage.cleaning.walk import Walk
from quire.storage.indexes.transaction_index import AbortedTransaction


class OffsetMapBuilder:
    __slots__ = ("_full", "_run", "_transactions", "_walk", "latest_offset", "table")

    def __init__(self, disk: Disk, run: CleaningRun, aborted: Sequence[AbortedTransaction]) -> None:
        self._run = run
        self._walk = Walk(disk, run.limits.buffer_bytes)
        self._transactions = CleanedTransactions(aborted)
        self._full = False
        # There are no more keys than offsets.
        keys_max = run.first_uncleanable_offset - run.first_dirty_offset
        self.table = make_table(keys_max, run.limits.table_bytes, run.limits.table_load_factor, run.seed)
        self.latest_offset = run.first_dirty_offset - 1
        """The table has every key of the dirty part up to this offset."""

    def run(self) -> Iterator[int]:
        """Yields the number of bytes read, for each buffer."""
        run = self._run
        for segment, end_offset in zip(run.segments, run.end_offsets, strict=True):
            if end_offset <= run.first_dirty_offset:
                continue
            for size_bytes in self._walk.through(segment.path, segment.size, self._take):
                yield size_bytes
                if self._full:
                    return
            # Offsets that are missing at the end of a segment were removed by an earlier run.
            self.latest_offset = max(self.latest_offset, end_offset - 1)

    def _take(self, data: memoryview, filled: int) -> int:
        position = 0
        while True:
            status, position, mapped = map_batches(self.table, data, position, filled, self._run.first_dirty_offset)
            self.latest_offset = max(self.latest_offset, mapped)
            if status == stops.SPECIAL:
                header = self._walk.checked_header(position)
                status = self._map_special(data, header)
                if status == stops.END:
                    position = header.end
                    continue
            if status == stops.DAMAGED:
                raise self._walk.damage(position, "its checksum does not match, or its records are broken")
            self._full = status == stops.FULL
            return filled if self._full else position

    def _map_special(self, data: memoryview, header: BatchHeader) -> int:
        if header.is_control:
            self._transactions.on_control_batch(header, data)
        elif not self._transactions.on_batch(header) and header.record_count:
            section = records_section(data, header, self._run.limits.decompressed_bytes)
            status, mapped = map_records(
                self.table, section, header.record_count, header.base_offset, self._run.first_dirty_offset
            )
            self.latest_offset = max(self.latest_offset, mapped)
            if status != stops.END:
                return status
        self.latest_offset = max(self.latest_offset, header.last_offset)
        return stops.END
