"""The indexes of a log that is being opened: missing, empty or doubtful ones are rebuilt from the log.

An index holds nothing of its own, so it can always be rebuilt. Files that are written here must be synced before the
recovery point passes them; roll marks tell the next start when that did not happen.
"""

from quire.seams import Disk
from quire.storage import file_names
from quire.storage.indexes.index_file import CorruptIndexError
from quire.storage.producers.producer_replay import rebuild_transaction_index
from quire.storage.producers.producer_snapshot import ProducerSnapshots
from quire.storage.recovery.roll_mark import is_mark, make_mark, marked_offsets
from quire.storage.segment import Segment
from quire.storage.segments import Segments


class IndexRecovery:
    """`names` are the files in the folder when the log was opened."""

    def __init__(self, disk: Disk, folder: str, names: frozenset[str]) -> None:
        self._disk = disk
        self._folder = folder
        self._names = names
        self.unsynced: list[str] = []
        """Files written while opening; they must be synced before the recovery point passes them."""
        self.roll_marks = [f"{folder}/{name}" for name in sorted(names) if is_mark(name)]
        """To be removed when these are synced."""

    def found(self, segment: Segment) -> None:
        """Notes which index files of a segment exist, so that none is read or written without need."""
        if not any(self.has(segment, each) for each in (file_names.TRANSACTION_INDEX, file_names.ABORTED_COUNT)):
            segment.transaction_index.reset()
            is_new = segment.size == 0 and self.has_indexes(segment)
            if is_new and not any(map(self._disk.file_size, segment.index_paths)):
                segment.indexes_are_saved()

    def rebuild_missing(self, segments: Segments, count: int) -> None:
        """Rebuilds the missing indexes of the first `count` segments, which no scan will read.

        Otherwise the first look-up would have to wait for it. The recovery point may have passed these segments, so a
        roll mark tells the next start, after a power loss, that their indexes are new.
        """
        for slot in range(count):
            segment = segments[slot]
            if segment.size and self._lacks_an_index(segment):
                if segment is not segments.active:
                    self.mark_roll(segments[slot + 1].base_offset)
                self.rebuild(segment, CorruptIndexError("an index is missing"))

    def rebuild(self, segment: Segment, reason: CorruptIndexError) -> None:
        segment.rebuild_indexes(reason)
        self.unsynced += [segment.offset_index.path, segment.time_index.path]

    def mark_roll(self, base_offset: int) -> None:
        self.roll_marks.append(make_mark(self._disk, self._folder, base_offset))

    def save(self, segments: Segments, first: Segment) -> None:
        """Writes the indexes that a scan has built, from the segment `first` on."""
        for segment in segments.between(first.base_offset, segments.active.base_offset):
            segment.save_indexes()
            self.unsynced += segment.index_paths
            segment.unpin_indexes()
        segments.active.pin_indexes()

    def save_completed(self, segment: Segment) -> None:
        """The segment was the active one, and another follows it."""
        if segment.save_indexes():
            self.unsynced += segment.index_paths
        segment.unpin_indexes()

    def check_transaction_indexes(
        self, segments: Segments, snapshots: ProducerSnapshots, *, scanned_from: int, end_offset: int
    ) -> None:
        """Checks those of the segments before `scanned_from`, and rebuilds those that fail Kafka's own check."""
        doubtful = [segments.slot_of(offset - 1) for offset in marked_offsets(self._names)]
        for slot, segment in enumerate(segments):
            if segment.size == 0 or segment.base_offset >= scanned_from:
                continue
            ends_at = segments[slot + 1].base_offset if slot + 1 < len(segments) else end_offset
            try:
                self._check(segment, ends_at, is_doubtful=slot in doubtful)
            except CorruptIndexError as error:
                rebuild_transaction_index(segments, snapshots, segment, ends_at, error)
                self.unsynced += segment.transaction_index.paths

    def _check(self, segment: Segment, end_offset: int, *, is_doubtful: bool) -> None:
        if is_doubtful:
            reason = CorruptIndexError("a power loss may have taken them")
            self.rebuild(segment, reason)
            raise reason
        if not self.has_indexes(segment):
            raise CorruptIndexError("an index is missing")
        segment.transaction_index.check(end_offset)
        if self.has(segment, file_names.TRANSACTION_INDEX) and not segment.transaction_index.count:
            raise CorruptIndexError("it is empty")

    def _lacks_an_index(self, segment: Segment) -> bool:
        """A completed time index has at least the highest timestamp: if it is empty, it lost what it had.

        So is that of a segment whose records have no timestamps, which is rare: it is rebuilt at every start.
        """
        return not self.has_indexes(segment) or self._disk.file_size(segment.time_index.path) == 0

    def has_indexes(self, segment: Segment) -> bool:
        return all(self.has(segment, suffix) for suffix in (file_names.OFFSET_INDEX, file_names.TIME_INDEX))

    def has(self, segment: Segment, suffix: str) -> bool:
        return file_names.offset_file(segment.base_offset, suffix) in self._names
