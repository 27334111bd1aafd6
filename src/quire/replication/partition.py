"""One partition on the node that leads it: what is appended, how far it is committed, and who waits for that.

Guarantees: offsets are handed out once and in order; nothing past the high watermark (or, for read_committed, the last
stable offset) is read; an acks=all write counts as committed only when every in-sync replica has it. Handlers call this
class; it calls the partition's `Log`. An OSError of the disk becomes KAFKA_STORAGE_ERROR for this partition's clients.

With `flush.messages` this node's own log counts to its end only while fewer records than that are not on disk; then an
append starts a flush, and until that is done only what is on disk counts: for the high watermark, and for producers,
whatever their acks. So at most `flush.messages` - 1 records that anybody was told of can be lost with the power, and
with 1 none. Records that come during a flush share the next one.
"""

from collections import deque
from collections.abc import Callable

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import is_internal
from quire.protocol.records import BatchHeader, check_plain, read_header
from quire.protocol.records.batch import LOG_APPEND_TIME, set_max_timestamp
from quire.protocol.records.expansion import Expansion, TakesLongError
from quire.replication.admissions import Admission, Admissions
from quire.replication.batch_check import AT_ONCE_BYTES, BatchCheck
from quire.replication.high_watermark import high_watermark, restored_position
from quire.replication.leader_epochs import check_leader_epoch
from quire.replication.settings import PartitionSettings
from quire.replication.waiting import CommitWait, FetchWait
from quire.seams import Buffer, FileSlice
from quire.storage import AppendInfo, Log, LogPosition
from quire.storage.end_marker import build_end_marker
from quire.storage.producer_state import ProducerEntry
from quire.storage.time_search import TimeSearch
from quire.storage.transaction_index import AbortedTransaction

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6

HIGH_WATERMARK = -1
"""As a DeleteRecords offset: everything that is committed."""

Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch of a record."""


class Partition:
    __slots__ = (
        "_end_seen_by_readers",
        "_flush",
        "_flush_asked",
        "_follower_ends",
        "_high_watermark",
        "_in_sync_followers",
        "_own_end",
        "_schedule_wake_up",
        "_uncommitted_ends",
        "admissions",
        "commit_waits",
        "fetch_waits",
        "flush_waits",
        "index",
        "is_internal",
        "is_leader",
        "isr",
        "leader_epoch",
        "log",
        "node_id",
        "on_storage_error",
        "settings",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        node_id: int,
        log: Log,
        settings: PartitionSettings,
        schedule_wake_up: Callable[["Partition"], None],
        flush: Callable[["Partition"], None],
        on_storage_error: Callable[["Partition", OSError], None],
        high_watermark: int = 0,
    ) -> None:
        """`high_watermark` is the last one known; what is past it waits for the in-sync replicas again.

        `flush` makes what is in the log durable, in the background, and then calls `flushed` or `flush_failed`.
        """
        self.topic = topic
        self.topic_id = topic_id
        self.is_internal = is_internal(topic)
        self.index = index
        self.node_id = node_id
        self.log = log
        self.settings = settings
        self.is_leader = False
        self.leader_epoch = -1
        self.isr: tuple[int, ...] = ()
        self._in_sync_followers: tuple[int, ...] = ()
        self.commit_waits: deque[tuple[int, CommitWait]] = deque()
        """Who wrote with acks=all, and which offset the high watermark has to reach for them."""
        self.flush_waits: deque[tuple[int, CommitWait]] = deque()
        """Who wrote with acks=1, and which offset this node's own log has to reach for them."""
        self.fetch_waits: dict[FetchWait, None] = {}
        self.admissions = Admissions()
        self.on_storage_error = on_storage_error
        self._schedule_wake_up = schedule_wake_up
        self._flush = flush
        self._flush_asked = False
        self._own_end = 0
        """How far this node's own log counts."""
        self._follower_ends: dict[int, int] = {}
        self._uncommitted_ends: deque[tuple[int, int]] = deque()
        """Of transactions that have ended, but not for readers yet: where the marker is, and where they began."""
        self._high_watermark = restored_position(log, min(max(high_watermark, log.start_offset), log.end_offset))
        self._end_seen_by_readers = self._high_watermark

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index})"

    # Leadership

    def become_leader(self, leader_epoch: int, isr: tuple[int, ...]) -> None:
        """Takes over, or hears of a new in-sync set, as the controller recorded it."""
        self.is_leader = True
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.log.assign_epoch(leader_epoch)
            self._follower_ends.clear()
        self.isr = isr
        self._in_sync_followers = tuple(replica for replica in isr if replica != self.node_id)
        self._advance_high_watermark()

    def answer_waiting_fetches(self) -> None:
        """Whoever waits for records gets what there is, now instead of at the timeout."""
        for wait in list(self.fetch_waits):
            wait.disturb()

    def resign(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """This node does not lead the partition any more, or it is gone: whoever waits hears it now."""
        self.is_leader = False
        self.answer_waiting_fetches()
        self._give_up_waits(0, reason)

    def change_settings(self, settings: PartitionSettings) -> None:
        """The topic has other settings now, and so has the log: what they ask for is seen to at once."""
        self.settings = settings
        if self.is_leader:
            self._advance_high_watermark()

    def check_leader_epoch(self, requested: int) -> None:
        code = check_leader_epoch(self.leader_epoch, requested)
        if code is not ErrorCode.NONE:
            raise ApiError(code, f"{self} is led in epoch {self.leader_epoch}, not {requested}")

    # Offsets

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed may see: the first open transaction, or the high watermark.

        A transaction whose marker is not committed is open, too: it would be again if that were lost.
        """
        open_at = self.log.producer_state.first_open_transaction_offset
        if self._uncommitted_ends:
            ended_at = min(first_offset for _, first_offset in self._uncommitted_ends)
            open_at = ended_at if open_at is None else min(open_at, ended_at)
        # The beginning of a long transaction may have been deleted since.
        return self.high_watermark if open_at is None else min(max(open_at, self.log.start_offset), self.high_watermark)

    @property
    def log_start_offset(self) -> int:
        return self.log.start_offset

    def may_acknowledge(self, offset: int, acks_all: bool) -> bool:
        """Whether the record at `offset` is as safe as its producer and its topic ask for."""
        return offset < self._own_end and (not acks_all or offset < self._high_watermark.offset)

    # Writing

    def append(
        self,
        records: Buffer,
        acks_all: bool,
        now_ms: int,
        admission: Admission | None = None,
        *,
        in_transaction: bool = False,
        check: BatchCheck | None = None,
    ) -> AppendInfo:
        """Checks a producer's batch, gives it its offsets and appends it as it came; ApiError when it is refused.

        `records` is patched in place; a `check` of them that has been run already is not run again. Without one, what
        takes long raises TakesLongError: the check is for a job then. A batch that an idempotent producer has sent
        before is not appended again: its first answer is given once more. With LogAppendTime the answer's max timestamp
        is the time of appending, or of the check. Transactional batches must come in a request that is
        `in_transaction`, the first with its `admission`.
        """
        settings = self.settings
        header: BatchHeader | None = None
        if acks_all and len(self.isr) < settings.min_insync_replicas:
            raise self._not_in_sync()
        if check is None and not settings.compression:
            # The usual batch, checked by a single call.
            view = memoryview(records)
            header = check_plain(
                view,
                settings.max_message_bytes,
                settings.compacted,
                now_ms,
                settings.timestamp_before_max_ms,
                settings.timestamp_after_max_ms,
            )
            if header is not None and settings.log_append_time:
                set_max_timestamp(view, header, LOG_APPEND_TIME, now_ms)
        if header is None:
            if check is None:
                check = BatchCheck(records, settings, now_ms)
                if not check.run(Expansion(at_once_bytes=AT_ONCE_BYTES)):
                    raise TakesLongError
            view, header = check.result()
        if header.producer_id >= 0:
            original = self.log.check_producer(header, from_zero=admission is not None and admission.bumps_epoch)
            if original is not None:
                # Its flush may have failed, or the settings may ask for more than they did at the time.
                self._advance_high_watermark()
                return AppendInfo(
                    original.first_offset, original.last_offset, self.log.start_offset, original.timestamp
                )
        if header.is_transactional:
            self._check_admitted(header, admission, in_transaction)
        try:
            appended = self.log.append(view, (header,), self.leader_epoch, now_ms)
        except OSError as error:
            raise self._storage_error(error) from error
        self._advance_high_watermark()
        return appended

    def _not_in_sync(self) -> ApiError:
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{self} has {len(self.isr)} in-sync replicas and needs {self.settings.min_insync_replicas}",
        )

    def _check_admitted(self, header: BatchHeader, admission: Admission | None, in_transaction: bool) -> None:
        """What belongs to an open transaction may come; whatever would open one must have been admitted to it."""
        if not in_transaction:
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "a transactional batch needs a request with a transactional id",
            )
        if self.log.producer_state.has_open_transaction(header.producer_id, header.producer_epoch):
            return
        if admission is None or not self.admissions.holds(admission) or header.producer_id != admission.producer_id:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self} is not part of an open transaction of producer {header.producer_id}",
            )

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int,
        bumps_epoch: bool,
        now_ms: int,
    ) -> int:
        """Ends a producer's transaction by a marker; returns the offset that must be committed for it to hold.

        Ending it once more writes nothing where that can be told. ApiError when somebody newer is at work.
        """
        if self.log.producer_state.check_end(producer_id, producer_epoch, coordinator_epoch, bumps_epoch=bumps_epoch):
            marker = build_end_marker(
                producer_id,
                producer_epoch,
                committed=committed,
                coordinator_epoch=coordinator_epoch,
                timestamp=now_ms,
            )
            self.append_own(marker, now_ms)
            self.admissions.end(producer_id, producer_epoch, bumps_epoch=bumps_epoch)
        return self.log.end_offset

    def append_own(self, batch: bytearray, now_ms: int, expected_offset: int | None = None) -> AppendInfo:
        """Appends what the cluster itself writes: a coordinator's records, the marker of a transaction's end.

        With `expected_offset` only if the log ends there: OFFSET_OUT_OF_RANGE tells a coordinator that it does not know
        what its log holds.
        """
        if len(self.isr) < self.settings.min_insync_replicas:
            raise self._not_in_sync()
        if expected_offset is not None and expected_offset != self.log.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self} ends at {self.log.end_offset}, not at {expected_offset}"
            )
        view = memoryview(batch)
        header = read_header(view)
        began_at = None
        if header.producer_id >= 0:
            if header.is_control:
                began_at = self.log.producer_state.open_since(header.producer_id)
            else:
                self.log.check_producer(header)
        try:
            appended = self.log.append(view, (header,), self.leader_epoch, now_ms)
        except OSError as error:
            raise self._storage_error(error) from error
        if began_at is not None:
            self._uncommitted_ends.append((appended.last_offset, began_at))
        self._advance_high_watermark()
        return appended

    def _advance_high_watermark(self) -> None:
        log = self.log
        own_end = log.end_offset
        if log.is_flush_due:
            own_end = log.recovery_point
            if not self._flush_asked:
                self._flush_asked = True
                self._flush(self)
        self._own_end = own_end
        current = self._high_watermark.offset
        reached = own_end
        if self._in_sync_followers:
            reached = high_watermark(current, own_end, self._follower_ends, self._in_sync_followers)
        if reached > current:
            try:
                self._high_watermark = log.end if reached == log.end_offset else log.position_of(reached)
            except OSError as error:
                # Its directory goes offline, and whoever waits here is told with that.
                self._storage_error(error)
                return
            while self._uncommitted_ends and self._uncommitted_ends[0][0] < reached:
                self._uncommitted_ends.popleft()
            if self.fetch_waits:
                self._schedule_wake_up(self)
            else:
                self._end_seen_by_readers = self._high_watermark
        if self.commit_waits or self.flush_waits:
            self._wake_produce_waits()

    def _wake_produce_waits(self) -> None:
        while self.flush_waits and self.flush_waits[0][0] <= self._own_end:
            self.flush_waits.popleft()[1].settled(self)
        # The high watermark may be past what the settings, changed since, want on disk.
        while self.commit_waits and self.commit_waits[0][0] <= min(self._own_end, self._high_watermark.offset):
            self.commit_waits.popleft()[1].settled(self)

    def _give_up_waits(self, offset: int, reason: ErrorCode) -> None:
        """Whoever waits for more than `offset` waits in vain."""
        hopeless: list[CommitWait] = []
        for waits in (self.flush_waits, self.commit_waits):
            hopeless += (wait for wanted, wait in waits if wanted > offset)
            remaining = [entry for entry in waits if entry[0] <= offset]
            waits.clear()
            waits.extend(remaining)
        for wait in hopeless:
            wait.settled(self, reason)

    def flushed(self) -> None:
        """What was in the log when a flush was asked for is on disk."""
        self._flush_asked = False
        if self.is_leader:
            self._advance_high_watermark()

    def flush_failed(self) -> None:
        """There is no room for what a flush has to write. The next append, or the next `flush_again`, asks anew."""
        self._flush_asked = False
        self._give_up_waits(self._own_end, ErrorCode.KAFKA_STORAGE_ERROR)

    def flush_again(self) -> None:
        """Asks anew for a flush that failed; called every so often."""
        if self.is_leader and self.log.is_flush_due:
            self._advance_high_watermark()

    def wake_fetch_waits(self) -> None:
        """Tells waiting fetches how many bytes became readable since they were told last."""
        seen, now = self._end_seen_by_readers, self._high_watermark
        self._end_seen_by_readers = now
        size = self.bytes_between(seen, now)
        for wait in list(self.fetch_waits):
            wait.more_bytes(self, size)

    def bytes_between(self, seen: LogPosition, now: LogPosition) -> int:
        """How much there is to read between two positions; as good as all where they are in two segments."""
        same_segment = seen.segment_base == now.segment_base
        return now.position - seen.position if same_segment else self.settings.segment_bytes

    # Reading

    def read(self, offset: int, max_bytes: int, *, at_least_one_batch: bool, committed_only: bool) -> FileSlice | None:
        """Batches from `offset` on as a slice of one segment; None when there is nothing to be read yet."""
        if offset < self.log.start_offset or offset > self.log.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self} holds offsets {self.log.start_offset} to {self.log.end_offset}, not {offset}",
            )
        upper = self.readable_end(committed_only)
        try:
            return self.log.read(offset, max_bytes, upper=upper, min_one_batch=at_least_one_batch)
        except OSError as error:
            raise self._storage_error(error) from error

    def readable_end(self, committed_only: bool) -> LogPosition:
        if committed_only and (stable := self.last_stable_offset) < self.high_watermark:
            try:
                return self.log.position_of(stable)
            except OSError as error:
                raise self._storage_error(error) from error
        return self._high_watermark

    def aborted_transactions(self, offset: int, part: FileSlice) -> list[AbortedTransaction]:
        """The aborted transactions whose records `part`, read from `offset` on, may hold."""
        try:
            return self.log.aborted_transactions(offset, part)
        except OSError as error:
            raise self._storage_error(error) from error

    def find_offset(self, timestamp: int, committed_only: bool, searched: TimeSearch | None = None) -> Found | None:
        """What ListOffsets asks for: a landmark (negative) or the first record at or after a time.

        LongSearchError when that takes a job first.
        """
        limit = self.last_stable_offset if committed_only else self.high_watermark
        if timestamp == LATEST_TIMESTAMP:
            return (-1, limit, self.leader_epoch)
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            start = self.log.start_offset
            return (-1, start, self.log.epochs.epoch_of(start))
        if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
            return (-1, -1, -1)
        try:
            if timestamp == MAX_TIMESTAMP:
                found = self.log.find_max_timestamp(searched)
            else:
                found = self.log.find_timestamp(timestamp, searched)
        except OSError as error:
            raise self._storage_error(error) from error
        return found if found is not None and found[1] < limit else None

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch not above `leader_epoch` in this log and the offset where it ends; (-1, -1) if none."""
        return self.log.epoch_end(leader_epoch)

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """Where a reader's history leaves this log's (KIP-595), or None while they agree."""
        epoch, end_offset = self.log.epoch_end(last_fetched_epoch)
        if epoch == -1:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self} knows no epoch {last_fetched_epoch}")
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None

    def producers(self) -> list[ProducerEntry]:
        return self.log.producers()

    def _storage_error(self, error: OSError) -> ApiError:
        """What clients are told of a disk that fails; whoever keeps the directory hears of it too."""
        self.on_storage_error(self, error)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {self} fails: {error.strerror}")

    # Deleting

    def deletion_target(self, offset: int) -> int:
        """Where the log will start without what is before `offset` (-1: the high watermark); ApiError if refused."""
        if not self.settings.deletable:
            raise ApiError(ErrorCode.POLICY_VIOLATION, f"{self} is compacted, and its records cannot be deleted")
        target = self.high_watermark if offset == HIGH_WATERMARK else offset
        if target < 0 or target > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self} can be deleted up to {self.high_watermark}, not {offset}"
            )
        return max(target, self.log.start_offset)
