"""The leader's side of a partition: appends, in-sync replicas, acknowledgements, and the requests that wait.

A `LeaderRole` is one leadership: one leader epoch on this node. `Partition.become_leader` makes it. When the leadership
ends, `close` answers all waiting requests and revokes all verification guards, so nothing reaches the next leadership.

Guarantees: offsets are assigned once and in order; an acks=all write counts as committed only when every in-sync
replica has it. An OSError of the disk becomes KAFKA_STORAGE_ERROR for the clients of this partition.

A produce with acks=all:
    node/api/produce.py calls `append`, which writes to the log and calls `advance_high_watermark`;
    `may_acknowledge` is true if the high watermark has passed the records: the handler responds at once;
    otherwise the handler puts a `CommitWait` into `commit_waits`; a later `advance_high_watermark` (after an append, a
    flush, a follower's fetch or an ISR change) completes it in `_complete_produce_waits`, or its timeout does.

A follower's fetch:
    node/replicas has a session for each follower, which is a `ReplicaReader` of this role: `append` tells it that there
    is more to read. What a fetch says about the follower goes to `Followers.fetched`, which moves the high watermark.

A waiting fetch:
    node/api/fetch.py puts a `FetchWait` into `waiting_fetches` of every partition that it reads;
    `advance_high_watermark` calls `PartitionOwner.high_watermark_advanced`, and the owner calls `WaitingFetches.wake`
    in the next turn of the event loop, once for all appends of this turn;
    a `FetchWait` that has enough bytes ends, and the handler reads the partitions again.

With `flush.messages`, this node's own log counts to its end only while fewer records than that are not on disk. The
append that reaches the limit starts a flush (`PartitionOwner.flush_wanted`). Until the flush ends, only what is on disk
counts: for the high watermark, and for producers, whatever their acks. So a power loss takes at most
`flush.messages` - 1 acknowledged records, and none if it is 1. Records appended during a flush share the next one.
"""

from collections import deque
from typing import TYPE_CHECKING

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import BatchHeader, check_plain, read_header
from quire.protocol.records.batch import LOG_APPEND_TIME, set_max_timestamp
from quire.protocol.records.expansion import Expansion, TakesLongError
from quire.replication.batch_check import AT_ONCE_BYTES, BatchCheck
from quire.replication.commit_wait import CommitWait
from quire.replication.followers import Followers
from quire.replication.members import Members
from quire.replication.refused_batches import RefusedBatches
from quire.replication.replica_reader import ReplicaReader
from quire.replication.verification_guards import VerificationGuard, VerificationGuards
from quire.seams import Buffer
from quire.storage import AppendInfo, Log
from quire.storage.producers.end_marker import build_end_marker

if TYPE_CHECKING:
    from quire.replication.partition import Partition


class LeaderRole:
    __slots__ = (
        "_awaits_flush",
        "_own_end",
        "_refused",
        "commit_waits",
        "end_error",
        "epoch_start_offset",
        "flush_waits",
        "followers",
        "guards",
        "leader_epoch",
        "log",
        "partition",
        "replica_readers",
    )

    def __init__(self, partition: "Partition", leader_epoch: int, members: Members) -> None:
        self.partition = partition
        self.log = partition.log
        self.leader_epoch = leader_epoch
        self.epoch_start_offset = partition.log.end_offset
        """What is before this comes from earlier leaders."""
        self.followers = Followers(self, members)
        self.replica_readers: dict[ReplicaReader, None] = {}
        """The followers that read from this leader, each with a session."""
        self.commit_waits: deque[tuple[int, CommitWait]] = deque()
        """Writes with acks=all, each with the offset that the high watermark has to reach."""
        self.flush_waits: deque[tuple[int, CommitWait]] = deque()
        """Writes with acks=1, each with the offset that this node's own log has to reach."""
        self.guards = VerificationGuards()
        self.end_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        """The error of a write that starts to wait after the leadership has ended."""
        self._own_end = 0
        """How far this node's own log counts."""
        self._awaits_flush = False
        self._refused: RefusedBatches | None = None
        """None until the first one."""

    def __repr__(self) -> str:
        return f"LeaderRole({self.partition}, epoch {self.leader_epoch})"

    @property
    def is_active(self) -> bool:
        """Whether this leadership has not ended."""
        return self.partition.leader is self

    # --- Leadership

    def begin(self) -> None:
        """The role is in place: what the in-sync replicas are known to have is committed."""
        self.advance_high_watermark()

    def settings_changed(self) -> None:
        """The topic's settings, and the log's, may ask for a flush or no longer ask for one, or for other replicas."""
        self.followers.settings_changed()
        self.advance_high_watermark()

    def close(self, error: ErrorCode) -> None:
        """The leadership has ended: waiting writes fail with `error`, and followers learn of it.

        `Partition` calls this after it has put another role, or none, in place of this one.
        """
        self.end_error = error
        self.guards.revoke_all()
        for reader in self.replica_readers:
            reader.has_more(self)
        self.replica_readers = {}
        self._fail_produce_waits(0, error)

    # --- Writing

    def append(
        self,
        records: Buffer,
        acks_all: bool,
        now_ms: int,
        guard: VerificationGuard | None = None,
        *,
        in_transaction: bool = False,
        check: BatchCheck | None = None,
    ) -> AppendInfo:
        """Checks a producer's batch, assigns its offsets and appends it as it is; ApiError if it is refused.

        `records` is patched in place. A `check` of them that has already run is not repeated. Without one,
        TakesLongError says that the check takes too long for the event loop and has to run in a job. A batch that an
        idempotent producer sends again is not appended again: the result is that of the original. With LogAppendTime,
        the max timestamp of the result is the time of the append or of the check. Transactional batches must come in a
        request that is `in_transaction`, the first one of a transaction with a `guard`.
        """
        settings = self.partition.settings
        header: BatchHeader | None = None
        if acks_all and self.followers.is_under_min_isr:
            self._note_refused(read_header(records), ErrorCode.NOT_ENOUGH_REPLICAS)
            raise self._not_enough_replicas()
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
            if self._refused is not None:
                self._refused.check(header)
            original = self.log.check_producer(header, from_zero=guard is not None and guard.bumps_epoch)
            if original is not None:
                if self._refused is not None:
                    self._refused.written(header)
                # Its flush may have failed, or the settings may ask for more than they did at the time.
                self.advance_high_watermark()
                return AppendInfo(
                    original.first_offset, original.last_offset, self.log.start_offset, original.timestamp
                )
        if header.is_transactional:
            self._check_transaction(header, guard, in_transaction)
        try:
            appended = self.log.append(view, (header,), self.leader_epoch, now_ms)
        except OSError as error:
            self._note_refused(header, ErrorCode.KAFKA_STORAGE_ERROR)
            raise self.partition.storage_error(error) from error
        if self._refused is not None:
            self._refused.written(header)
        self._written()
        return appended

    def _note_refused(self, header: BatchHeader, code: ErrorCode) -> None:
        if header.producer_id >= 0:
            if self._refused is None:
                self._refused = RefusedBatches()
            self._refused.add(header, code)

    def _not_enough_replicas(self) -> ApiError:
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{self.partition} has {len(self.followers.in_sync.committed)} in-sync replicas and needs "
            f"{self.followers.required_in_sync}",
        )

    def _check_transaction(self, header: BatchHeader, guard: VerificationGuard | None, in_transaction: bool) -> None:
        """A batch may continue an open transaction; to begin one, it needs a valid guard."""
        if not in_transaction:
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "a transactional batch needs a request with a transactional id",
            )
        if self.log.producer_state.has_open_transaction(header.producer_id, header.producer_epoch):
            return
        if guard is not None and guard.issuer is not self.guards:
            # Markers that other leaders wrote meanwhile did not revoke it, so the coordinator must confirm again.
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.partition} has changed its leader: try again")
        if guard is None or not guard.is_valid or header.producer_id != guard.producer_id:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self.partition} is not part of an open transaction of producer {header.producer_id}",
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
        """Ends a producer's transaction with a marker; returns the offset that must be committed for it to hold.

        A repeated marker is not written again where it can be recognized. ApiError if a newer producer epoch or
        coordinator has written here.
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
            self.guards.revoke(producer_id, producer_epoch, bumps_epoch=bumps_epoch)
        return self.log.end_offset

    def append_own(self, batch: bytearray, now_ms: int, expected_offset: int | None = None) -> AppendInfo:
        """Appends what the cluster itself writes: a coordinator's records, or a transaction marker.

        With `expected_offset`, only if the log ends there: OFFSET_OUT_OF_RANGE says that the coordinator's state is not
        that of its log.
        """
        partition = self.partition
        if self.followers.is_under_min_isr:
            raise self._not_enough_replicas()
        if expected_offset is not None and expected_offset != self.log.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} ends at {self.log.end_offset}, not at {expected_offset}"
            )
        view = memoryview(batch)
        header = read_header(view)
        if header.producer_id >= 0 and not header.is_control:
            self.log.check_producer(header)
        try:
            appended = self.log.append(view, (header,), self.leader_epoch, now_ms)
        except OSError as error:
            raise partition.storage_error(error) from error
        self._written()
        return appended

    def _written(self) -> None:
        for reader in self.replica_readers:
            reader.has_more(self)
        self.advance_high_watermark()

    # --- Committing

    def may_acknowledge(self, offset: int, acks_all: bool) -> bool:
        """Whether the record at `offset` is as safe as its producer and its topic ask for."""
        return offset < self._own_end and (not acks_all or offset < self.partition.high_watermark)

    def advance_high_watermark(self) -> None:
        """Something has changed that it depends on: this log, what is on disk, a follower, the ISR or the settings."""
        log = self.log
        partition = self.partition
        own_end = log.end_offset
        if log.is_flush_due:
            own_end = log.recovery_point
            if not self._awaits_flush:
                self._awaits_flush = True
                partition.owner.flush_wanted(self)
        self._own_end = own_end
        reached = self.followers.committed_end(own_end)
        if reached > partition.high_watermark:
            partition.move_high_watermark(reached, log.end if reached == log.end_offset else None)
            if partition.waiting_fetches:
                partition.owner.high_watermark_advanced(partition)
            for reader in self.replica_readers:
                reader.has_news(self)
        if self.commit_waits or self.flush_waits:
            self._complete_produce_waits()

    def _complete_produce_waits(self) -> None:
        while self.flush_waits and self.flush_waits[0][0] <= self._own_end:
            self.flush_waits.popleft()[1].partition_done(self)
        # After a change of settings, the high watermark may be past what they now want on disk.
        committed = min(self._own_end, self.partition.high_watermark)
        # It may be committed by fewer replicas than are required by now.
        error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if self.followers.is_under_min_isr else ErrorCode.NONE
        while self.commit_waits and self.commit_waits[0][0] <= committed:
            self.commit_waits.popleft()[1].partition_done(self, error)

    def _fail_produce_waits(self, offset: int, error: ErrorCode) -> None:
        """Fails the writes that wait for more than `offset`."""
        failing: list[CommitWait] = []
        for waits in (self.flush_waits, self.commit_waits):
            failing += (wait for wanted, wait in waits if wanted > offset)
            remaining = [entry for entry in waits if entry[0] <= offset]
            waits.clear()
            waits.extend(remaining)
        for wait in failing:
            wait.partition_done(self, error)

    # --- Flushing

    def flushed(self) -> None:
        """What was in the log when `flush_wanted` was called is on disk."""
        self._awaits_flush = False
        if self.is_active:
            self.advance_high_watermark()

    def flush_failed(self) -> None:
        """The disk has no room for what the flush writes. The next append or `retry_flush` wants a flush again."""
        self._awaits_flush = False
        self._fail_produce_waits(self._own_end, ErrorCode.KAFKA_STORAGE_ERROR)

    def retry_flush(self) -> None:
        """Requests a failed flush again. The owner calls this regularly."""
        if self.log.is_flush_due:
            self.advance_high_watermark()

    def replace_log(self, log: Log) -> None:
        """As `Partition.replace_log`. What is not on disk there may have been on disk in the log before it."""
        self.log = log
        self._awaits_flush = False
        self.advance_high_watermark()

    def log_start_moved(self) -> None:
        """Records were deleted: the followers delete them too when their fetches are answered."""
        for reader in self.replica_readers:
            reader.has_more(self)
