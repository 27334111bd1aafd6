"""A follower's changes of a log: it appends the leader's batches, and truncates its own where they differ."""

from collections.abc import Sequence

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import BatchHeader
from quire.storage.append_info import AppendInfo
from quire.storage.log.appending import LogAppending
from quire.storage.producers.producer_replay import replay_producers
from quire.storage.producers.producer_state import ProducerState
from quire.storage.segment import Segment


class LogFollowing(LogAppending):
    __slots__ = ()

    def append_as_follower(
        self, records: memoryview | bytearray | bytes, headers: Sequence[BatchHeader], now_ms: int
    ) -> AppendInfo:
        """Appends batches unchanged, with the offsets and epochs that the leader gave them. Crashes as in `append`."""
        base_offset = headers[0].base_offset
        offset = self.end_offset
        timestamp = -1
        for header in headers:
            if header.base_offset < offset:
                raise ApiError(
                    ErrorCode.CORRUPT_MESSAGE, f"{self.path} ends at {offset} and cannot take {header.base_offset}"
                )
            offset = header.next_offset
            timestamp = max(timestamp, header.max_timestamp)
        for header in headers:
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        try:
            self._write(records, headers, offset - 1, timestamp, now_ms)
        except Exception:
            # With an epoch whose records could not be written, this log would seem to agree with the leader's, and
            # would then refuse the batches of the epochs before it. Opening drops such epochs after a crash.
            self.epochs.truncate_from_end(self.end_offset)
            raise
        return AppendInfo(base_offset, offset - 1, self.start_offset, timestamp)

    def truncate_to(self, offset: int) -> None:
        """Removes everything from `offset` on, including the batch that contains it.

        A node calls `LogDirectory.truncate` instead, because the checkpoint must take back the recovery point first.
        The newest segments go first, so that a crash leaves a prefix, at worst a longer one. If a
        damaged batch hides where to cut, this raises DamagedBatchError before it changes anything.
        """
        if offset >= self.end_offset:
            # A leader that lost its term before its first append leaves an epoch without records at the end. A fetch
            # with that epoch would diverge again and again, and older batches would be attributed to it.
            self.epochs.truncate_from_end(self.end_offset)
            return
        if offset <= self.start_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self._segments[self._segments.slot_of(offset - 1)].find_cut(offset)
        self._recent.clear()
        self._retire(self._segments.drop_from(offset))
        self._flush_state.truncated(self.recovery_point_if_truncated_to(offset))
        self.end_offset = max(self._segments.active.truncate_to(offset), self.start_offset)
        self.epochs.truncate_from_end(self.end_offset)
        self._snapshots.remove_after(self.end_offset)
        self.uncommitted_markers.truncated(self.end_offset)
        if len(self.producer_state):
            self.producer_state = replay_producers(
                self._segments, self._snapshots, self._segments[0].base_offset, self.end_offset
            )

    def recovery_point_if_truncated_to(self, offset: int) -> int:
        """The recovery point after a truncation to `offset`.

        A crash may undo the truncation of a file, so the scan has to begin with that whole segment.
        """
        return min(self.recovery_point, offset, self._segments[self._segments.slot_of(offset - 1)].base_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Removes everything; the log continues, empty, at `offset`. A crash in between leaves a prefix of it."""
        created_ms = self._segments.active.created_ms
        self._recent.clear()
        self._retire(list(self._segments)[::-1])
        self._segments.replace_all(
            Segment.create(self._disk, self.path, offset, self.config, self._cache, now_ms=created_ms)
        )
        self.start_offset = self.end_offset = offset
        # Not `offset` itself: until the next flush, a crash may restore old segments whose end was never synced.
        self._flush_state.truncated(min(self.recovery_point, offset))
        self._flush_state.created_file()
        self.epochs.clear()
        self._snapshots.remove_all()
        self.uncommitted_markers.clear()
        self.producer_state = ProducerState()
