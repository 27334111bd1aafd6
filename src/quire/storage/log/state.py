"""The fields of a log and what follows directly from them. The parts of `Log` inherit from this class."""

from collections.abc import Callable, Sequence
from typing import Any

from quire.seams import Disk
from quire.storage.deleting.retired import Remover, RetiredSegments
from quire.storage.directory.reserve import NO_RESERVE, Reserve
from quire.storage.flushing.log_flush import FlushState
from quire.storage.indexes.index_file import IndexCache
from quire.storage.log_config import LogConfig
from quire.storage.positions import LogPosition, RecentPositions
from quire.storage.producers.producer_state import ProducerState
from quire.storage.producers.uncommitted_markers import UncommittedMarkers
from quire.storage.recovery.log_recovery import OpenedLog
from quire.storage.segment import Segment


class LogState:
    __slots__ = (
        "_cache",
        "_disk",
        "_flush_state",
        "_recent",
        "_remove_retired",
        "_segments",
        "_snapshots",
        "closed",
        "config",
        "end_offset",
        "epochs",
        "on_roll",
        "path",
        "producer_state",
        "reserve",
        "start_offset",
        "uncommitted_markers",
    )

    def __init__(
        self, disk: Disk, path: str, config: LogConfig, opened: OpenedLog, cache: IndexCache, remove_retired: Remover
    ) -> None:
        self._disk = disk
        self._cache = cache
        self._remove_retired = remove_retired
        self._segments = opened.segments
        self._snapshots = opened.snapshots
        self.producer_state: ProducerState = opened.producers
        """Sequence numbers and open transactions of each producer that is not expired, as the log has them."""
        self.uncommitted_markers = UncommittedMarkers(opened.uncommitted_markers)
        """Which ended transactions are open to readers, because their markers are not below the high watermark."""
        self._recent = RecentPositions()
        self._flush_state = FlushState(opened.recovery_point, opened.unsynced, opened.epochs_saved, opened.roll_marks)
        self.path = path
        self.closed = False
        self.config = config
        self.epochs = opened.epochs
        self.start_offset = opened.start_offset
        self.end_offset = opened.end_offset
        """The offset that the next record gets."""
        self.reserve: Reserve = NO_RESERVE
        """While this reserve is missing, the log refuses appends, because the remaining room is for metadata."""
        self.on_roll: Callable[[Any], None] | None = None
        """Called with the `Log` after a segment is rolled, which is the time to flush the completed ones."""

    def __repr__(self) -> str:
        return f"Log({self.path!r}, {self.start_offset} to {self.end_offset})"

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> Sequence[Segment]:
        return list(self._segments)

    @property
    def end(self) -> LogPosition:
        """Where the next batch will be written."""
        active = self._segments.active
        return LogPosition(self.end_offset, active.base_offset, active.size)

    @property
    def recovery_point(self) -> int:
        """The log is on disk up to this offset."""
        return self._flush_state.recovery_point

    @property
    def truncations(self) -> int:
        """How often the log was truncated. If this changes, what a caller knows of the segments may be outdated."""
        return self._flush_state.truncations

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The newest epoch at or below `leader_epoch` and the offset where it ends; (-1, -1) if unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.end_offset)

    def _write_snapshot(self, offset: int) -> None:
        """The next flush makes the snapshot of producers durable, and writes it if there are many."""
        written = self._snapshots.write_or_begin(offset, self.producer_state)
        if isinstance(written, str):
            self._flush_state.wrote([written])
        else:
            self._flush_state.begins_snapshot(written, self._snapshots)

    def _retire(self, segments: list[Segment]) -> None:
        if segments:
            self._remove_retired(RetiredSegments(self._disk, segments), self.config.file_delete_delay_ms)
