"""One replica of a partition: identity, log, high watermark and leader epoch, whatever role this node has in it.

The role is a `LeaderRole`, a `FollowerRole` or none. A role lasts for one leader epoch, and its state ends with it.
What follows from the log is here and outlives roles: the high watermark, the last stable offset, and reading.

Guarantees: nothing past the high watermark (for read_committed: the last stable offset) is read, and the high watermark
never goes back. An OSError of the disk becomes KAFKA_STORAGE_ERROR for this partition's clients.
"""

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import is_internal
from quire.replication.follower_role import FollowerRole
from quire.replication.high_watermark import before_all_segments
from quire.replication.leader_epochs import check_leader_epoch
from quire.replication.leader_role import LeaderRole
from quire.replication.members import Members
from quire.replication.partition_owner import PartitionOwner
from quire.replication.settings import PartitionSettings
from quire.replication.waiting_fetches import WaitingFetches
from quire.seams import FileSlice
from quire.storage import Log, LogPosition
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.producers.producer_state import ProducerEntry
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.time_lookup.time_search import TimeSearch

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6

HIGH_WATERMARK = -1
"""As a DeleteRecords offset: everything that is committed."""

FoundOffset = tuple[int, int, int]
"""Timestamp, offset and leader epoch of a record, as ListOffsets returns them."""


class Partition:
    __slots__ = (
        "_high_watermark_position",
        "follower",
        "high_watermark",
        "index",
        "is_internal",
        "leader",
        "leader_epoch",
        "log",
        "node_id",
        "owner",
        "settings",
        "topic",
        "topic_id",
        "waiting_fetches",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        node_id: int,
        log: Log,
        settings: PartitionSettings,
        owner: PartitionOwner,
        high_watermark: int = 0,
    ) -> None:
        """`high_watermark` is the last known one: what is past it must be confirmed by the in-sync replicas again."""
        self.topic = topic
        self.topic_id = topic_id
        self.is_internal = is_internal(topic)
        self.index = index
        self.node_id = node_id
        self.log = log
        self.settings = settings
        self.owner = owner
        self.leader: LeaderRole | None = None
        """Set while this node leads the partition."""
        self.follower: FollowerRole | None = None
        """Set while another node leads the partition."""
        self.leader_epoch = -1
        """Of the last role."""
        self.waiting_fetches = WaitingFetches(self)
        self.high_watermark = min(max(high_watermark, log.start_offset), log.end_offset)
        """Moved by the role, with `move_high_watermark`."""
        self._high_watermark_position: LogPosition | None = None
        """Looked up when it is needed: nothing is read from most replicas that follow."""

    def __repr__(self) -> str:
        return f"Partition({self})"

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    # --- Roles

    def become_leader(self, leader_epoch: int, members: Members) -> None:
        """This node leads the partition, or continues to lead it with other members, according to the metadata."""
        previous = self.leader
        if previous is not None and leader_epoch <= self.leader_epoch:
            previous.followers.change_members(members)
            return
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.log.assign_epoch(leader_epoch)
        if self.follower is not None:
            # What this process wrote counts as intact, but its file may have been damaged while others were read.
            self.log.check_again()
        leader = LeaderRole(self, self.leader_epoch, members)
        self._change_role(leader, None, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        leader.begin()

    def become_follower(self, leader_id: int, leader_epoch: int) -> None:
        """Another node leads the partition."""
        if self.follower is not None and leader_epoch <= self.follower.leader_epoch:
            return
        self.leader_epoch = max(leader_epoch, self.leader_epoch)
        self._change_role(None, FollowerRole(self, leader_id, leader_epoch), ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def leave_role(self, error: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """The partition has no leader, or this replica is deleted or offline: waiting writes fail with `error`."""
        self._change_role(None, None, error)

    def _change_role(self, leader: LeaderRole | None, follower: FollowerRole | None, error: ErrorCode) -> None:
        previous, self.leader, self.follower = self.leader, leader, follower
        # Fetches that are answered now read again, and must find the new role.
        self.waiting_fetches.answer()
        if previous is not None:
            previous.close(error)
        self.owner.role_changed(self)

    def check_leader_epoch(self, requested: int) -> None:
        code = check_leader_epoch(self.leader_epoch, requested)
        if code is not ErrorCode.NONE:
            raise ApiError(code, f"{self} is led in epoch {self.leader_epoch}, not {requested}")

    def settings_changed(self) -> None:
        """`settings` and the log's configuration have changed, and roles and members are those that go with them."""
        if self.leader is not None:
            self.leader.settings_changed()
        elif self.follower is not None:
            self.follower.settings_changed()

    # --- Offsets

    @property
    def high_watermark_position(self) -> LogPosition:
        """Where in the log the high watermark is; ApiError if the disk fails."""
        position = self._high_watermark_position
        if position is None:
            try:
                position = self.log.position_of(self.high_watermark)
            except OSError as error:
                raise self.storage_error(error) from error
            except DamagedBatchError as damage:
                self.damage_error(damage)
                position = before_all_segments(self.log)
            self._high_watermark_position = position
        return position

    def move_high_watermark(self, offset: int, position: LogPosition | None = None) -> None:
        """For the role: everything before `offset` is committed. Back only if the log was truncated."""
        self.high_watermark = offset
        self._high_watermark_position = position
        if self.log.uncommitted_markers.entries:
            self.log.uncommitted_markers.hold_back(offset)

    def log_shortened(self) -> None:
        """The log was truncated, or starts elsewhere."""
        self._high_watermark_position = None
        self.high_watermark = min(max(self.high_watermark, self.log.start_offset), self.log.end_offset)

    def log_repaired(self) -> None:
        """Damaged segments were replaced by intact ones, in which batches may be at other positions."""
        self._high_watermark_position = None
        self.waiting_fetches.answer()

    def replace_log(self, log: Log) -> None:
        """`log` is a copy that has what the log has, with batches at other positions, and takes its place."""
        self.log = log
        self._high_watermark_position = None
        if self.leader is not None:
            self.leader.replace_log(log)
        elif self.follower is not None:
            self.follower.replace_log(log)
        self.waiting_fetches.answer()

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed may see: the first open transaction, or the high watermark.

        A transaction with an uncommitted marker counts as open: if the marker were lost, it would be.
        """
        open_at = self.log.producer_state.first_open_transaction_offset
        markers = self.log.uncommitted_markers
        if markers.entries and (ended_at := markers.hold_back(self.high_watermark)) is not None:
            open_at = ended_at if open_at is None else min(open_at, ended_at)
        # The beginning of a long transaction may have been deleted since.
        return self.high_watermark if open_at is None else min(max(open_at, self.log.start_offset), self.high_watermark)

    @property
    def log_start_offset(self) -> int:
        return self.log.start_offset

    # --- Reading

    def read(self, offset: int, max_bytes: int, *, at_least_one_batch: bool, committed_only: bool) -> FileSlice | None:
        """Batches from `offset` on as a slice of one segment; None when there is nothing to be read yet."""
        self.check_copied(offset)
        self.check_holds(offset)
        upper = self.readable_end(committed_only)
        try:
            return self.log.read(offset, max_bytes, upper=upper, min_one_batch=at_least_one_batch, in_job=True)
        except OSError as error:
            raise self.storage_error(error) from error
        except DamagedBatchError as damage:
            raise self.damage_error(damage) from None

    def check_copied(self, offset: int) -> None:
        """ApiError if a reader is ahead of this follower: that its log ends before is no sign of a truncation then."""
        if self.leader is None and offset > self.log.end_offset:
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, f"{self} has not copied {offset} from its leader yet")

    def check_holds(self, offset: int) -> None:
        if not self.log.start_offset <= offset <= self.log.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self} holds offsets {self.log.start_offset} to {self.log.end_offset}, not {offset}",
            )

    def read_uncommitted(self, offset: int, max_bytes: int, *, at_least_one_batch: bool) -> FileSlice | None:
        """As `read`, up to the end of the log: for followers."""
        self.check_holds(offset)
        try:
            return self.log.read(offset, max_bytes, min_one_batch=at_least_one_batch, in_job=True)
        except OSError as error:
            raise self.storage_error(error) from error
        except DamagedBatchError as damage:
            raise self.damage_error(damage) from None

    def readable_end(self, committed_only: bool) -> LogPosition:
        if committed_only and (stable := self.last_stable_offset) < self.high_watermark:
            try:
                return self.log.position_of(stable)
            except OSError as error:
                raise self.storage_error(error) from error
            except DamagedBatchError as damage:
                raise self.damage_error(damage) from None
        return self.high_watermark_position

    def bytes_between(self, seen: LogPosition, now: LogPosition) -> int:
        """How many bytes there are between two positions; an overestimate if they are in different segments."""
        same_segment = seen.segment_base == now.segment_base
        return now.position - seen.position if same_segment else self.settings.segment_bytes

    def aborted_transactions(self, offset: int, part: FileSlice) -> list[AbortedTransaction]:
        """The aborted transactions whose records `part`, read from `offset` on, may hold.

        NotCheckedError if a job has to rebuild a wrong index first.
        """
        try:
            return self.log.aborted_transactions(offset, part)
        except OSError as error:
            raise self.storage_error(error) from error
        except DamagedBatchError as damage:
            raise self.damage_error(damage) from None

    def find_offset(
        self, timestamp: int, committed_only: bool, searched: TimeSearch | None = None
    ) -> FoundOffset | None:
        """The offset of the first record at or after a time, or for a negative `timestamp` an end of the log.

        LongSearchError if the search has to run in a job first; `searched` is its result. NotCheckedError if a job has
        to rebuild a wrong index first.
        """
        limit = self.last_stable_offset if committed_only else self.high_watermark
        if timestamp == LATEST_TIMESTAMP:
            self._check_knows_end()
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
            raise self.storage_error(error) from error
        except DamagedBatchError as damage:
            raise self.damage_error(damage) from None
        if found is not None and found[1] < limit:
            return found
        self._check_knows_end()
        return None

    def _check_knows_end(self) -> None:
        """A new leader does not know how much is committed until its followers have fetched: more than it says.

        A client that got an offset from the last leader would see the end of the log go back (KIP-207).
        """
        if self.leader is not None and self.high_watermark < self.leader.epoch_start_offset:
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, f"{self} has a new leader, whose followers must fetch first")

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch not above `leader_epoch` in this log and the offset where it ends; (-1, -1) if none."""
        return self.log.epoch_end(leader_epoch)

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """Where a reader's log diverges from this one (KIP-595); None while they agree."""
        epoch, end_offset = self.log.epoch_end(last_fetched_epoch)
        if epoch == -1:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self} knows no epoch {last_fetched_epoch}")
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None

    def producers(self) -> list[ProducerEntry]:
        return self.log.producers()

    def storage_error(self, error: OSError) -> ApiError:
        """Reports a failing disk to the owner; returns the error for the client."""
        self.owner.storage_failed(self, error)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {self} fails: {error.strerror}")

    def damage_error(self, damage: DamagedBatchError) -> ApiError:
        """Reports a damaged batch to the owner, which may have it repaired; returns the error for the client."""
        return self.owner.damage_found(self, damage)

    # --- Deleting

    def deletion_target(self, offset: int) -> int:
        """The start of the log without records before `offset` (-1: the high watermark); ApiError if refused."""
        if not self.settings.deletable:
            raise ApiError(ErrorCode.POLICY_VIOLATION, f"{self} is compacted, and its records cannot be deleted")
        target = self.high_watermark if offset == HIGH_WATERMARK else offset
        if target < 0 or target > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self} can be deleted up to {self.high_watermark}, not {offset}"
            )
        return max(target, self.log.start_offset)
