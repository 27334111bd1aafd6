"""Appending batches: offsets, the leader epoch, one write to the active segment, then the state of producers.

append -> active segment (one write) -> producer state, in memory
"""

from collections.abc import Sequence

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import LENGTH_END, BatchHeader, patch
from quire.seams import Buffer
from quire.storage.append_info import AppendInfo
from quire.storage.indexes.offset_index import MAX_RELATIVE_OFFSET
from quire.storage.log.state import LogState
from quire.storage.producers.end_marker import read_end_marker
from quire.storage.producers.producer_state import ProducerEntry, RememberedBatch
from quire.storage.recovery.roll_mark import make_mark
from quire.storage.rolling import has_room
from quire.storage.segment import Segment


class LogAppending(LogState):
    __slots__ = ()

    def assign_epoch(self, leader_epoch: int) -> None:
        """Starts `leader_epoch` at the end of the log."""
        self.epochs.assign(leader_epoch, self.end_offset)

    def check_producer(self, header: BatchHeader, *, from_zero: bool = False) -> RememberedBatch | None:
        """Checks a producer's batch before it is appended.

        Returns the original if the batch is a duplicate, otherwise None. ApiError if the batch must not be appended.
        """
        return self.producer_state.check(header, from_zero=from_zero) if header.producer_id >= 0 else None

    def producers(self) -> list[ProducerEntry]:
        return list(self.producer_state)

    def append(
        self, records: memoryview | bytearray, headers: Sequence[BatchHeader], leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        """Appends batches as the leader: sets their offsets and leader epoch in place, then writes them at once.

        `headers` are those of `records`, in order, and are changed with them. Producers' batches must have passed
        `check_producer`. A crash during the write leaves a torn batch that was not acknowledged; opening cuts it off.
        """
        if len(records) > (most := self.config.segment_bytes):
            sentence = f"{len(records)} bytes do not fit into a segment of {most} (segment.bytes)"
            raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, sentence)
        base_offset = offset = self.end_offset
        position = 0
        timestamp = -1
        for header in headers:
            patch(records, position, offset, leader_epoch)
            header.base_offset = offset
            header.leader_epoch = leader_epoch
            position += header.length + LENGTH_END
            offset += header.last_offset_delta + 1
            if header.max_timestamp > timestamp:
                timestamp = header.max_timestamp
        if self.epochs.latest != leader_epoch:
            # Before the write: opening drops an epoch without records, but records without their epoch would be
            # attributed to the previous leader.
            self.epochs.assign(leader_epoch, base_offset)
        self._write(records, headers, offset - 1, timestamp, now_ms)
        return AppendInfo(base_offset, offset - 1, self.start_offset, timestamp)

    def _write(
        self, records: Buffer, headers: Sequence[BatchHeader], last_offset: int, timestamp: int, now_ms: int
    ) -> None:
        if self.reserve.is_missing and not self.reserve.set_aside():
            raise self.reserve.no_room(self.path)
        active = self._segments.active
        if not has_room(active, len(records), last_offset, timestamp, now_ms, self.config):
            # At the end offset rather than at the first batch: without compaction, a segment begins where the one
            # before it ends.
            fits = last_offset - self.end_offset <= MAX_RELATIVE_OFFSET
            active = self._roll_to(self.end_offset if fits else headers[0].base_offset, now_ms)
        active.append(records, headers)
        self.end_offset = last_offset + 1
        for header in headers:
            if header.producer_id >= 0:
                if header.is_control:
                    self._end_transaction(records, header)
                else:
                    self.producer_state.update(header)

    def _end_transaction(self, records: Buffer, header: BatchHeader) -> None:
        marker = read_end_marker(records, header)
        if marker is None:
            return
        first_offset = self.producer_state.open_since(header.producer_id)
        if first_offset is not None:
            self.uncommitted_markers.appended(header.last_offset, first_offset)
        aborted = self.producer_state.end_transaction(header, marker)
        if aborted is not None:
            self._segments.active.add_aborted(aborted)

    def roll(self, now_ms: int) -> None:
        """Begins a new segment, unless the active one is empty."""
        if self._segments.active.size:
            self._roll_to(self.end_offset, now_ms)

    def _roll_to(self, base_offset: int, now_ms: int) -> Segment:
        """Completes the active segment and begins another.

        A crash leaves both, or only the completed one; then nothing in the new one had been synced. The next flush
        syncs the indexes of the completed segment and the snapshot. After a crash before that flush they are rebuilt:
        opening scans the completed segment or, if it was on disk to its end, finds the roll mark.
        """
        completed = self._segments.active
        if self._flush_state.may_reach(base_offset):
            self._flush_state.rolls(make_mark(self._disk, self.path, base_offset))
        completed.save_indexes()
        self._flush_state.wrote(completed.index_paths)
        self._write_snapshot(base_offset)
        segment = Segment.create(self._disk, self.path, base_offset, self.config, self._cache, now_ms=now_ms)
        completed.unpin_indexes()
        completed.file.trim()
        self._segments.add(segment)
        self._recent.clear()
        self._flush_state.created_file()
        if self.on_roll is not None:
            self.on_roll(self)
        return segment
