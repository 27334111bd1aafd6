"""Deletes expired segments of the logs of a data directory, one log after the other.

    find ─▶ roll, if the whole log has expired ─▶ flush up to the new start ─▶ checkpoint that ─▶ delete the files

The log is flushed up to the new start, so that producer state and the next segment survive a crash. The checkpoint is
on disk before clients see the new start, so that no crash moves it back. If thousands of logs expire together, a few at
a time are rolled and flushed, which leaves disk time for others, and they share the writes of the checkpoint. Completed
segments are deleted even if the disk is full; a log that must be rolled or flushed first waits until the next look.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from quire.protocol.errors import ApiError
from quire.seams import Clock
from quire.storage.deleting import retention
from quire.storage.deleting.retention import Expired
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.remembered_offsets import RememberedOffsets
from quire.storage.flushing.flusher import Flusher, Then
from quire.storage.log import Log
from quire.storage.scanning.range_check import NotCheckedError, ReadCheck
from quire.turns import Turns

_FLUSHED_TOGETHER = 3
"""A disk flushes several logs in little more time than one. More would delay the fsyncs that writers wait for."""

_log = logging.getLogger("quire.storage")


class ExpiredSegments:
    """Part of `LogDirectory`: `guarded` handles errors of its disk, `start_at` moves a log's start, deleting files."""

    def __init__(
        self,
        clock: Clock,
        flusher: Flusher,
        remembered: RememberedOffsets,
        guarded: Callable[[], AbstractContextManager[None]],
        start_at: Callable[[TopicPartition, Log, int, Then], None],
        check: Callable[[ReadCheck, Then], None],
    ) -> None:
        self._clock = clock
        self._flusher = flusher
        self._remembered = remembered
        self._guarded = guarded
        self._start_at = start_at
        self._check = check
        self._waiting: dict[Log, Then] = {}
        """Logs with expired segments, and the function that begins to delete them."""
        self._busy: dict[Log, None] = {}
        """Logs that are being rolled and flushed."""
        self._drops = Turns(clock, per_turn=1)
        """Files to be renamed, those of one log per turn."""

    def look_at(self, key: TopicPartition, log: Log, high_watermark: int, more: Then) -> None:
        """Deletes expired segments, if any; calls `more` if there may be others, because the number is limited."""
        self._look_at(key, log, high_watermark, more, frozenset())

    def _look_at(self, key: TopicPartition, log: Log, high_watermark: int, more: Then, checked: frozenset[str]) -> None:
        """`checked` has the segments whose indexes were rebuilt before this look, each once."""
        if log in self._waiting or log.closed:
            return
        try:
            with self._guarded():
                expired = log.find_expired(high_watermark, self._clock.now_ms())
        except NotCheckedError as error:
            subject = error.check.subject
            if subject not in checked:
                again = checked | {subject}
                self._check(error.check, lambda: self._look_again(key, log, high_watermark, more, again))
            return
        if expired is not None:
            self._waiting[log] = lambda: self._begin(key, log, high_watermark, more)
            self._next()

    def _look_again(
        self, key: TopicPartition, log: Log, high_watermark: int, more: Then, checked: frozenset[str]
    ) -> None:
        with suppress(ApiError):
            self._look_at(key, log, high_watermark, more, checked)

    def forget(self, log: Log) -> None:
        """The log is being deleted, and its flush will not call back."""
        self._waiting.pop(log, None)
        self._done(log)

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting or self._busy or self._drops)

    def _next(self) -> None:
        while len(self._busy) < _FLUSHED_TOGETHER:
            log = next((log for log in self._waiting if log not in self._busy), None)
            if log is None:
                return
            self._busy[log] = None
            self._clock.call_soon(self._waiting.pop(log))

    def _done(self, log: Log) -> None:
        if log in self._busy:
            del self._busy[log]
            self._next()

    def _begin(self, key: TopicPartition, log: Log, high_watermark: int, more: Then) -> None:
        if not log.closed:
            with suppress(ApiError, NotCheckedError), self._guarded():
                expired = log.find_expired(high_watermark, self._clock.now_ms())
                if expired is not None and not self._remembered.is_to_start_at(key, expired.start_offset):
                    self._flush(key, log, expired, more)
                    return
        self._done(log)

    def _flush(self, key: TopicPartition, log: Log, expired: Expired, more: Then) -> None:
        if expired.start_offset == log.end_offset:
            log.roll(self._clock.now_ms())
        if log.recovery_point >= expired.start_offset:
            # Without any flush, not even of other files, because the disk may be full.
            self._flushed(key, log, expired, more)
        else:
            self._flusher.flush(
                log,
                lambda: self._flushed(key, log, expired, more),
                lambda: self._done(log),
                up_to=expired.start_offset,
            )

    def _flushed(self, key: TopicPartition, log: Log, expired: Expired, more: Then) -> None:
        first_offset = log.start_offset

        def dropped() -> None:
            _tell(key, first_offset, expired)
            if expired.segment_count == retention.AT_ONCE_MAX:
                more()

        def saved() -> None:
            self._drops.add(lambda: self._start_at(key, log, expired.start_offset, dropped))

        self._remembered.will_start_at(key, expired.start_offset, saved)
        self._done(log)


def _tell(key: TopicPartition, first_offset: int, expired: Expired) -> None:
    _log.info(
        "deleted offsets %d to %d of %s-%d, %d bytes in %d segment%s: %s",
        first_offset,
        expired.start_offset - 1,
        *key,
        expired.size_bytes,
        expired.segment_count,
        "s" * (expired.segment_count > 1),
        expired.reason,
    )
