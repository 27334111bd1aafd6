"""Making a log durable. `quire.storage.flushing.log_flush` explains plans and the recovery point."""

from quire.storage.flushing.log_flush import FlushPlan
from quire.storage.log.state import LogState


class LogFlushing(LogState):
    __slots__ = ()

    @property
    def is_flush_due(self) -> bool:
        """Whether `flush.messages` or more records are not on disk. Asked after every append, so it must be cheap."""
        return self.end_offset - self._flush_state.recovery_point >= self.config.flush_messages

    @property
    def flushing(self) -> bool:
        return self._flush_state.flushing

    def start_flush(self, up_to: int | None = None) -> FlushPlan | None:
        """Plans the syncs that make everything below `up_to` (by default all) durable; None if there are none.

        There is no second plan until `finish_flush` or `fail_flush`.
        """
        up_to = self.end_offset if up_to is None else min(up_to, self.end_offset)
        if up_to == self.end_offset:
            # A high watermark that waits for this flush will be here.
            self._recent.remember(up_to, self._segments.active.size)
        return self._flush_state.start(self._disk, self.path, self._segments, self.epochs.to_bytes(), up_to)

    def finish_flush(self, plan: FlushPlan) -> bool:
        """The plan has run: what it covered is durable. False if it must run again before that is true."""
        return self._flush_state.finish(plan)

    def fail_flush(self) -> None:
        """The plan did not run to its end: what it covered may or may not be durable, and counts as not."""
        self._flush_state.end()

    def flush(self) -> None:
        """Flushes everything and blocks until it is done: for opening, closing, tools and tests."""
        plan = self.start_flush()
        if plan is not None:
            self._flush_state.run_now(plan)

    def sync_with_next_flush(self, path: str) -> None:
        """Adds a file beside the segments that must be durable before anything in the log counts as durable."""
        self._flush_state.wrote_beside(path)

    def sync_completed(self) -> None:
        """Blocks until the batches of all completed segments are on disk; not their indexes and snapshots."""
        for segment in self._segments.between(self.recovery_point, self._segments.active.base_offset):
            segment.file.sync()

    def write_last_files(self) -> None:
        """Writes the files that a clean stop leaves beside the batches: indexes, and a snapshot of producers if any.

        `close` does this too. If a flush follows this call, `close` has nothing left to wait for.
        """
        active = self._segments.active
        if active.save_indexes():
            # Without an offset entry, a clean start reads the whole segment and does not depend on the offset and time
            # indexes. It does rely on the index of aborted transactions.
            paths = active.index_paths
            self._flush_state.wrote(paths if active.offset_index.count else paths[2:])
        if (len(self.producer_state) or self._snapshots.offsets) and self.end_offset not in self._snapshots.offsets:
            self._write_snapshot(self.end_offset)
        self.epochs.truncate_from_end(self.end_offset)
