"""Deleting records from the start of the log, and replacing segments by compacted or repaired ones."""

from quire.storage.cleaning.swap import swap_in
from quire.storage.deleting import retention
from quire.storage.deleting.retention import Expired
from quire.storage.log.state import LogState
from quire.storage.producers.producer_replay import rebuild_transaction_index
from quire.storage.segment import Segment


class LogDeleting(LogState):
    __slots__ = ()

    def find_expired(self, high_watermark: int, now_ms: int) -> Expired | None:
        """The oldest segments, if the topic's retention settings say that they are to be deleted; None otherwise.

        NotCheckedError if a job has to rebuild a wrong index first.
        """
        return retention.find_expired(
            list(self._segments),
            self.config,
            end_offset=self.end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )

    def delete_records_before(self, offset: int) -> None:
        """Moves the start of the log to `offset` and deletes the segments that end before it.

        The oldest segments go first, so that a crash leaves a log without holes. It then starts at the offset in the
        directory's checkpoint or, if that is lower, at the first segment that is left.
        """
        assert self.start_offset <= offset <= self.end_offset, f"{self} cannot start at {offset}"
        self.start_offset = offset
        self.epochs.truncate_from_start(offset)
        self._retire(self._segments.drop_before(offset))
        self._snapshots.remove_before(self._segments[0].base_offset)

    def replace_segments(self, old: list[Segment], size: int) -> bool:
        """Replaces adjacent segments by their compacted copy of `size` bytes (see `quire.storage.cleaning.swap`).

        Returns False if some of them are gone by now. After an OSError, only the next start makes the log consistent.
        """
        base, now_ms = old[0].base_offset, old[-1].created_ms
        new = Segment(self._disk, self.path, base, self.config, self._cache, now_ms=now_ms, size=size)
        new.unchecked_end = 0  # This process wrote it.
        if not self._segments.replace(old, new):
            return False
        swap_in(self._disk, self.path, base, lambda: self._retire(old))
        self._snapshots.remove_at([segment.base_offset for segment in old[1:]])
        self._flush_state.created_file()
        return True

    def replace_damaged(self, damaged: Segment, size: int, *, lacks_aborted: bool) -> bool:
        """Replaces a segment by the repaired copy of `size` bytes; as `replace_segments`.

        The copy is checked once more before it is served, because the disk has just proved that it may be wrong.
        """
        if not self.replace_segments([damaged], size):
            return False
        slot = self._segments.slot_of(damaged.base_offset)
        repaired, end_offset = self._segments[slot], self._segments[slot + 1].base_offset
        repaired.unchecked_end = size
        if lacks_aborted:
            reason = ValueError("the segment was repaired, with markers of aborted transactions that it had lost")
            rebuild_transaction_index(self._segments, self._snapshots, repaired, end_offset, reason)
        return True

    def check_again(self) -> None:
        """What is in the log is checked before it is served, as if it had just been found on the disk."""
        for segment in self._segments:
            segment.unchecked_end, segment.checked = segment.size, None
