"""Deleting records from the start of the log, and putting compacted segments in the place of the originals."""

from quire.storage.cleaning.swap import swap_in
from quire.storage.deleting import retention
from quire.storage.deleting.retention import Expired
from quire.storage.log.state import LogState
from quire.storage.segment import Segment


class LogDeleting(LogState):
    __slots__ = ()

    def find_expired(self, high_watermark: int, now_ms: int) -> Expired | None:
        """The oldest segments, if the topic's retention settings say that they are to be deleted; None otherwise."""
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
