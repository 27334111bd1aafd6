"""A copy of a log takes the place of the original, when it has the same records."""

from quire.storage.indexes.index_file import IndexCache
from quire.storage.log.appending import LogAppending
from quire.storage.log.state import LogState
from quire.storage.producers.producer_snapshot import SnapshotLoader
from quire.storage.producers.producer_state import ProducerState


class LogTakeover(LogAppending):
    __slots__ = ()

    def take_over(self, original: LogState) -> None:
        """Continues where `original` is. The caller must flush this log before it removes the original.

        What is known beside the records is passed on: the state of producers, epochs without records, and which markers
        are not committed.
        """
        same = (self.start_offset, self.end_offset) == (original.start_offset, original.end_offset)
        assert same, f"{self} does not have what {original} has"
        self.epochs = original.epochs
        self.producer_state = original.producer_state
        self.uncommitted_markers = original.uncommitted_markers
        self.config = original.config

    def first_producers(self) -> SnapshotLoader:
        """For a job: the producers before the first segment. Their records are deleted, but they may be writing."""
        return self._snapshots.loader(self._segments[0].base_offset)

    def begin_with(self, producers: ProducerState) -> None:
        """The producers before the first batch of an empty copy, also for a start after a crash."""
        self.producer_state = producers
        if len(producers):
            self._write_snapshot(self.end_offset)

    def skip_to(self, offset: int, now_ms: int) -> None:
        """Moves the end to `offset`: a copy of a log whose last batches were compacted away."""
        self._roll_to(offset, now_ms)
        self.end_offset = offset

    def end_use(self) -> None:
        """Another log has taken its place. Its files stay open, because fetches may still send them."""
        self.closed = True
        self._flush_state.close()

    def use_cache(self, cache: IndexCache) -> None:
        """The log was opened with a cache of its own."""
        self._cache = cache
        for segment in self._segments:
            segment.use_cache(cache)
