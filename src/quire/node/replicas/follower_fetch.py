"""Fetches of brokers that follow a partition: the id of the replica is 0 or higher.

They may come over listeners that clients use too. The listener does not show that the sender is a node, so each
partition is judged by what the metadata says: the topic id, the leader and its epoch, the replicas of the partition,
and the registration of the sender (KIP-903). The errors are those of Kafka.

A follower reads to the end of the log, and says with each fetch where its own log ends. What is past the high watermark
may be truncated while it is being sent, because this node may be deposed; the follower checks what it receives.

A high watermark that has moved is no reason to answer: the fetch that commits a record would be answered at once and
sent again, for every record. The high watermark is sent with the next records, or when the fetch has waited long
enough, as in Kafka (KAFKA-9731). With a `replica.selector.class` consumers wait for it at the follower, so it is sent
at once.
"""

from functools import partial
from typing import TYPE_CHECKING

from quire.metadata.features import has_broker_epochs
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.node.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, PartitionKey
from quire.node.replicas.replica_session import FollowedPartition, ReplicaSession
from quire.node.replicas.replication_quota import UNLIMITED
from quire.node.replicas.whole_batches import without_cut_batch
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.fast_fetch import fetch_response, partition_data, topic_response
from quire.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
)
from quire.protocol.messages.fetch import PartitionData as PartitionResponse
from quire.replication.leader_epochs import NO_EPOCH
from quire.replication.leader_role import LeaderRole
from quire.replication.partition import Partition
from quire.seams import FileSlice
from quire.storage.scanning.range_check import NotCheckedError, ReadCheck

if TYPE_CHECKING:
    from quire.node.node import Node

SMALL_BYTES = 1 << 20
"""A follower that wants less of a partition, because of its quota, gets whole batches. It is the usual limit."""
NO_BROKER_EPOCH = -1
"""Before version 15 the request has none, so brokers send it at an old metadata.version alone."""


def replica_of(request: FetchRequest) -> int:
    """The id of the follower; negative if a consumer fetches. -2 is Kafka's id of a consumer for debugging."""
    return max(request.replica_id, request.replica_state.replica_id)


def check_follows(partition: Partition, replica_id: int, current_leader_epoch: int) -> None:
    """ApiError if `replica_id` is no other replica of a partition that this node leads."""
    leader = partition.leader
    if leader is None or replica_id not in leader.followers.in_sync.replicas or replica_id == partition.node_id:
        # With an epoch the sender may know of a reassignment earlier than this node, and retries.
        knows_epoch = current_leader_epoch != NO_EPOCH
        code = ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        raise ApiError(
            code, f"broker {replica_id} is not a replica of partition {partition.index} that could follow it"
        )


def answer(node: "Node", context: Context, request: FetchRequest) -> Work[FetchResponse]:
    if not node.authorizer.allows(context, AclOperation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        return _refused(node, context, request)
    replica_id, broker_epoch = replica_of(request), request.replica_state.replica_epoch
    session = node.replicas.sessions.of_fetch(request, replica_id, broker_epoch)
    return _FollowerFetch(node, context, request, session).work()


def _refused(node: "Node", context: Context, request: FetchRequest) -> Work[FetchResponse]:
    error = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{context.principal} may not fetch as a broker")
    node.refusals.refused("Fetch", replica_of(request), context.client_address, error)
    topics = []
    for topic in request.topics:
        failed = [_failed(wanted.partition, error.code) for wanted in topic.partitions]
        topics.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=failed))
        yield None
    return FetchResponse(responses=topics)


def _failed(index: int, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, high_watermark=-1, records=b"")


class _FollowerFetch:
    """One fetch: looks at the partitions that have changed, and waits for others to change if there is nothing."""

    __slots__ = (
        "_bytes",
        "_context",
        "_holds_news",
        "_logged",
        "_max_bytes",
        "_node",
        "_quota",
        "_request",
        "_response",
        "_session",
        "_to_send",
        "_turn",
        "_turns",
        "_unsaid",
    )

    def __init__(self, node: "Node", context: Context, request: FetchRequest, session: ReplicaSession) -> None:
        self._node = node
        self._context = context
        self._request = request
        self._session = session
        self._max_bytes = request.max_bytes
        self._bytes = 0
        self._logged: set[ErrorCode] = set()
        self._quota = node.replicas.throttles.leader
        self._turn: FollowedPartition | None = None
        """The throttled partition that is read now."""
        self._turns = 0
        self._response = fetch_response(NO_SESSION)
        self._to_send: list[tuple[Partition, PartitionResponse]] = []
        """The partitions whose answers have records."""
        self._holds_news = request.session_epoch > INITIAL_EPOCH and node.config.get("replica.selector.class") is None
        """Whether a high watermark alone has to wait."""
        self._unsaid: dict[PartitionKey, FollowedPartition] = {}
        """The partitions where it has moved, and nothing else has changed."""

    def work(self) -> Work[FetchResponse]:
        session, request, clock = self._session, self._request, self._node.clock
        deadline_ms = clock.monotonic_ms() + request.max_wait_ms
        is_answered = False
        try:
            yield from self._read_changed()
            yield from self._read_throttled()
            while not self._response.responses and (left_ms := deadline_ms - clock.monotonic_ms()) > 0:
                if session.throttled:
                    self._quota.wait(session)
                yield session.when_more(left_ms)
                has_turn = bool(session.throttled) and not self._quota.is_used_up
                if session.is_closed or not (session.changed or has_turn):
                    break  # The time is up, there was an election, or the broker has registered again.
                yield from self._read_changed()
                yield from self._read_throttled()
            yield from self._read_unsaid()
            self._leave_out_closed()
            is_known = not session.is_closed and session.replica_id in self._node.image.brokers
            is_answered = is_known and request.session_epoch != FINAL_EPOCH
        finally:
            if not is_answered:
                # The follower has hung up, or wants no session.
                self._node.replicas.sessions.close(session.id)
        self._response.session_id = session.id if is_answered else NO_SESSION
        return self._response

    def _read_changed(self) -> Work[None]:
        """Adds what there is to say to the response. Partitions without room in it remain in `changed`."""
        session = self._session
        looked_at, session.changed = session.changed, {}
        while looked_at:
            if self._bytes >= self._max_bytes:
                session.changed = {**looked_at, **session.changed}
                return
            key = next(iter(looked_at))
            followed = looked_at.pop(key)
            if session.partitions.get(key) is followed:
                self._look_at(followed)
            if looked_at:
                yield None

    def _read_throttled(self) -> Work[None]:
        """Throttled partitions have their turns after the others, until the quota is used up.

        There is one turn even if the others have filled the response: they must not hold these up either.
        """
        session = self._session
        while session.throttled and not session.is_closed and not self._quota.is_used_up:
            if self._turns and self._bytes >= self._max_bytes:
                return
            key, followed = session.throttled.popitem(last=False)
            self._turn = followed
            self._look_at(followed)
            self._turn = None
            self._turns += 1
            if key in session.throttled:
                return  # It did not fit.
            yield None
        self._turns = 0

    def _read_unsaid(self) -> Work[None]:
        """The response is sent now, so it tells the high watermarks that have moved."""
        self._holds_news = False
        unsaid, self._unsaid = self._unsaid, {}
        while unsaid:
            key, followed = unsaid.popitem()
            if self._session.partitions.get(key) is followed and not self._session.is_closed:
                self._look_at(followed)
            if unsaid:
                yield None

    def _look_at(self, followed: FollowedPartition) -> None:
        """Adds a partition to the response if there is news of it, or if the follower does not know the last ones."""
        session = self._session
        self._unsaid.pop(followed.key, None)
        try:
            answer = self._read(followed)
        except ApiError as error:
            self._log(error)
            answer = self._failed(followed, error)
            session.changed[followed.key] = followed  # until the follower asks for something else
        has_data = bool(answer.records) or answer.error_code != ErrorCode.NONE or answer.diverging_epoch.epoch >= 0
        if self._holds_news and not has_data and followed.has_only_committed(answer):
            self._unsaid[followed.key] = followed
            return
        has_news = followed.has_news(answer.high_watermark, answer.log_start_offset, has_data)
        if has_news or self._request.session_epoch <= INITIAL_EPOCH:
            self._add(followed, answer)
        if followed.is_named:
            # Both logs must agree before the follower may rely on the high watermark: it gets it again then.
            followed.sent_high_watermark = -1

    def _add(self, followed: FollowedPartition, answer: PartitionResponse) -> None:
        topics = self._response.responses
        if not topics or topics[-1].topic_id != followed.topic_id or topics[-1].topic != followed.topic:
            topics.append(topic_response(followed.topic, followed.topic_id))
        topics[-1].partitions.append(answer)

    def _failed(self, followed: FollowedPartition, error: ApiError) -> PartitionResponse:
        answer = _failed(followed.index, error.code)
        if error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            leader_id, epoch = self._node.partitions.current_leader(followed.topic, followed.topic_id, followed.index)
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
        return answer

    def _read(self, followed: FollowedPartition) -> PartitionResponse:
        """ApiError if the follower cannot be served. Bytes that were never read are checked first, in a job.

        The others do not wait for that: it is answered without records, and looked at again after the check.
        """
        leader = self._leader(followed)
        partition, offset = leader.partition, followed.fetch_offset
        if followed.is_named:
            diverging = None
            if followed.last_fetched_epoch >= 0:
                diverging = partition.diverging_epoch(followed.last_fetched_epoch, offset)
            if diverging is not None:
                answer = self._answer(followed, partition)
                answer.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
                return answer
            partition.check_holds(offset)
            followed.is_named = False
            leader.followers.fetched(self._session.replica_id, self._epoch, offset, followed.log_start_offset)
        room = min(followed.max_bytes, self._max_bytes - self._bytes)
        is_small = followed.max_bytes < SMALL_BYTES
        is_throttled = bool(self._quota.throttled) and self._quota.is_throttled(partition.topic, partition.index)
        if is_throttled and self._is_limited(leader, offset):
            if self._must_wait(followed):
                return self._answer(followed, partition)
            room = min(room, self._quota.room_bytes)
            is_small = True
        is_first = self._bytes == 0 or (self._turn is followed and self._turns == 0)
        data = None
        try:
            data = partition.read_uncommitted(offset, max(0, room), at_least_one_batch=is_first)
            if is_small and data is not None and len(data) >= room:
                data = self._without_cut_batch(partition, data)
        except NotCheckedError as error:
            self._check(followed, partition, error.check)
        answer = self._answer(followed, partition)
        if data is not None:
            answer.records = [data]
            self._bytes += len(data)
            self._to_send.append((partition, answer))
            if is_throttled:
                self._quota.record(len(data))
        elif offset < leader.log.end_offset and not followed.is_being_checked:
            # There was no room.
            if self._turn is followed:
                self._session.throttled[followed.key] = followed
                self._session.throttled.move_to_end(followed.key, last=False)
            else:
                self._session.changed[followed.key] = followed
        return answer

    def _without_cut_batch(self, partition: Partition, data: FileSlice) -> FileSlice:
        try:
            return without_cut_batch(data)
        except OSError as error:
            raise partition.storage_error(error) from error

    def _is_limited(self, leader: LeaderRole, offset: int) -> bool:
        """Whether what a throttled partition sends may have to wait: replicas in the ISR must stay there."""
        is_in_sync = self._session.replica_id in leader.followers.in_sync.committed
        return not is_in_sync and offset < leader.log.end_offset and self._quota.rate != UNLIMITED

    def _must_wait(self, followed: FollowedPartition) -> bool:
        """Adds a partition to those that wait, unless it may be read now."""
        if self._turn is followed or not (self._session.throttled or self._quota.is_used_up):
            return False
        self._session.throttled.setdefault(followed.key, followed)
        return True

    def _check(self, followed: FollowedPartition, partition: Partition, check: ReadCheck) -> None:
        if not followed.is_being_checked:
            followed.is_being_checked = True
            self._node.partitions.check(partition, check, partial(self._session.is_checked, followed))

    def _leave_out_closed(self) -> None:
        """A partition that was deleted after it was read has no file to send from."""
        for partition, answer in self._to_send:
            if partition.log.closed:
                answer.records = b""
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @property
    def _epoch(self) -> int:
        return self._request.replica_state.replica_epoch

    def _answer(self, followed: FollowedPartition, partition: Partition) -> PartitionResponse:
        return partition_data(
            followed.index,
            0,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            None,
            b"",
        )

    def _leader(self, followed: FollowedPartition) -> LeaderRole:
        leader = followed.leader
        if leader is None or not leader.is_active:
            leader = self._node.partitions.leader(followed.topic, followed.topic_id, followed.index)
            self._session.follow(leader, followed)
        leader.partition.check_leader_epoch(followed.current_leader_epoch)
        self._check_replica(leader, followed)
        return leader

    def _check_replica(self, leader: LeaderRole, followed: FollowedPartition) -> None:
        node, replica_id = self._node, self._session.replica_id
        check_follows(leader.partition, replica_id, followed.current_leader_epoch)
        epoch, broker = self._epoch, node.image.brokers.get(replica_id)
        if epoch == NO_BROKER_EPOCH and not has_broker_epochs(node.image.metadata_version):
            return
        known = NO_BROKER_EPOCH if broker is None else broker.epoch
        if epoch != known or broker is None:
            # What a broker says that has registered later counts when this node knows of that: it tries again.
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"its broker epoch is {epoch}, and broker {replica_id} has registered with {known}",
            )

    def _log(self, error: ApiError) -> None:
        """One line for each request and error."""
        if error.code not in self._logged:
            self._logged.add(error.code)
            self._node.refusals.refused("Fetch", self._session.replica_id, self._context.client_address, error)
