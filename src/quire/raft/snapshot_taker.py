"""Decides when this node writes a snapshot of its committed state, and writes it in a job.

A snapshot is due when enough was committed since the last one (`metadata.log.max.record.bytes.between.snapshots`), or
some time after the first change (`metadata.log.max.snapshot.interval.ms`). One that is due while another is being
written, or in the middle of a metadata transaction, is written after that. Afterwards old snapshots, and the log before
the oldest that stays, are deleted.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quire.protocol.schema import Message
from quire.raft import snapshot_file
from quire.raft.log_store import LogStore
from quire.raft.log_summary import LogPosition
from quire.raft.settings import MetadataLogSettings
from quire.seams import Clock, Timer
from quire.storage.errors import is_full

log = logging.getLogger("quire.raft")

RETRY_MS = 60_000.0

VersionedRecord = tuple[Message, int]
"""A metadata record and the version to write it in."""


class SnapshotContent(NamedTuple):
    """The state up to and including `last_offset`; `records` is read in another thread and must not change."""

    last_offset: int
    epoch: int
    timestamp_ms: int
    records: Iterable[VersionedRecord]


class SnapshotTaker:
    __slots__ = (
        "_bytes_since",
        "_clock",
        "_content",
        "_failed",
        "_is_overdue",
        "_settings",
        "_stopped",
        "_store",
        "_timer",
        "_trimmed",
        "_writing",
    )

    def __init__(
        self,
        store: LogStore,
        clock: Clock,
        settings: MetadataLogSettings,
        *,
        content: Callable[[], SnapshotContent | None],
        trimmed: Callable[[LogPosition], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`content` is the state now, or None in the middle of a metadata transaction. `trimmed` is called with the
        new start of the log."""
        self._store = store
        self._clock = clock
        self._settings = settings
        self._content = content
        self._trimmed = trimmed
        self._failed = failed
        self._bytes_since = 0
        self._timer: Timer | None = None
        self._is_overdue = False
        """Whether the timer has fired, and there is no snapshot since."""
        self._writing = False
        self._stopped = False

    def committed(self, size_bytes: int) -> None:
        self._bytes_since += size_bytes

    def take_if_due(self) -> None:
        if self._is_overdue or self._bytes_since >= self._settings.bytes_between_snapshots:
            self.take()
        elif self._timer is None and self._settings.snapshot_interval_ms and self._bytes_since:
            self._timer = self._clock.call_later(self._settings.snapshot_interval_ms, self._time_is_up)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _time_is_up(self) -> None:
        self._timer = None
        self._is_overdue = True
        self.take()

    def take(self) -> None:
        """Writes the committed state in a job, then deletes what it replaces; nothing while one is being written."""
        content = None if self._writing or self._stopped else self._content()
        if content is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_overdue = False
        self._writing = True
        self._bytes_since = 0
        position = LogPosition(content.epoch, content.last_offset + 1)
        control = self._store.history.at(position.offset)
        batches = snapshot_file.encode_snapshot(
            content.records,
            epoch=content.epoch,
            now_ms=self._clock.now_ms(),
            last_contained_timestamp_ms=content.timestamp_ms,
            kraft_version=control.kraft_version,
            voters=control.voters,
        )
        try:
            self._store.write_snapshot(
                position, batches, lambda: self._written(position), self._not_written, self._clock.now_ms()
            )
        except OSError as error:
            self._not_written(error)

    def _not_written(self, error: Exception) -> None:
        """A full disk does not end the node: the log has everything, and a later snapshot may succeed."""
        if not is_full(error):
            self._failed(error)
            return
        log.error("no metadata snapshot is written to %s until there is room again: %s", self._store.path, error)
        self._writing = False
        if self._timer is None and not self._stopped:
            self._timer = self._clock.call_later(RETRY_MS, self._time_is_up)

    def _written(self, position: LogPosition) -> None:
        self._writing = False
        if self._stopped:
            return
        log.info("metadata snapshot written end_offset=%d epoch=%d", position.offset, position.epoch)
        try:
            start = self._store.clean(self._clock.now_ms())
        except OSError as error:
            self._failed(error)
            return
        if start is not None:
            self._trimmed(start)
        self.take_if_due()
