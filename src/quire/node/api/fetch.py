"""Fetch: reads record batches as file slices, or waits until there are enough of them.

The response is sent as soon as `min_bytes` can be sent (or `max_bytes`, if that is less), a partition has an error, or
`max_wait_ms` has passed. Batches are sent as they are stored. The size limit may cut the last one, but the first batch
is sent whole even if it is larger than the limit, so that no consumer gets stuck. Bytes that this process has neither
written nor read before are checked first, in jobs. `quire.node.fetch_sessions` keeps the fetch sessions. On
controller listeners other nodes fetch the metadata log, which `metadata_fetch.py` handles.

Versions on broker and controller listeners:
    4   the oldest version served: isolation level, last stable offset, aborted transactions (KIP-98)
    5   log start offset, in both directions (KIP-107)
    6   the client knows KAFKA_STORAGE_ERROR (KIP-112)
    7   incremental fetch sessions (KIP-227)
    8   a throttled client gets its response at once and waits by itself (KIP-219)
    9   the client's leader epoch (KIP-320)
    10  the client can read zstd (KIP-110)
    11  rack and preferred read replica (KIP-392)
    12  flexible encoding; last fetched and diverging epoch (KIP-595); the current leader with some errors
    13  topics by id (KIP-516)
    14  the client knows OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)
    15  id and epoch of a follower in one structure (KIP-903)
    16  addresses of new leaders (KIP-951), which this node does not send
    17  directory id of a follower (KIP-853)
    18  high watermark of a follower (KIP-1166)
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchPartition, FetchSession, PartitionKey
from quire.node.leader_hints import endpoints_of
from quire.node.preferred_replica import preferred_replica
from quire.node.replicas import follower_fetch
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.fast_fetch import fetch_response, partition_data, topic_response
from quire.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from quire.protocol.uuids import ZERO
from quire.replication.fetch_wait import FetchWait
from quire.replication.follower_role import FollowerRole
from quire.replication.leader_role import LeaderRole
from quire.replication.partition import Partition
from quire.storage import LogPosition
from quire.storage.scanning.range_check import NotCheckedError, ReadCheck

if TYPE_CHECKING:
    from quire.node.node import Node

# Looking up an enum member through its class is slow.
READ = AclOperation.READ
TOPIC = Resource.TOPIC

READ_COMMITTED = 1
FIRST_VERSION_WITH_FOLLOWERS = 11
FIRST_VERSION_WITH_LEADER_HINTS = 12
FIRST_VERSION_WITH_LEADER_ADDRESSES = 16
FIRST_VERSION_WITH_TOPIC_IDS = 13
MOST_CHECKS = 3
"""How often a fetch waits for checks: once is enough, unless segments are added or deleted meanwhile."""
FEW_PARTITIONS = 100
"""Up to this many partitions are read without a pause, which takes about a millisecond."""


def handle(node: "Node", context: Context, request: FetchRequest) -> Work[FetchResponse]:
    if follower_fetch.replica_of(request) >= 0:
        return follower_fetch.answer(node, context, request)
    session, partitions = _session(node, context, request)
    return _Fetch(node, context, request, session, partitions).work()


def refuse(request: FetchRequest, error: ApiError) -> FetchResponse:
    """An error of the session is that of the whole request; others are reported for each partition."""
    if error.code in (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ):
        return FetchResponse(error_code=error.code)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_failed(wanted.partition, error.code) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _session(node: "Node", context: Context, request: FetchRequest) -> tuple[FetchSession | None, list[FetchPartition]]:
    """The session of this fetch, if any, and all partitions to read."""
    now_ms = node.clock.monotonic_ms()
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    wanted = [
        FetchPartition(
            topic.topic_id,
            topic.topic,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    if len(wanted) > 1:
        # A partition that is named twice is read once, as in a session. This bounds the work of a request.
        wanted = list({partition.key: partition for partition in wanted}.values())
    if request.session_epoch == FINAL_EPOCH:
        node.fetch_sessions.close(request.session_id)
        return None, wanted
    if request.session_epoch == INITIAL_EPOCH:
        return node.fetch_sessions.open(request.session_id, by_id, wanted, now_ms), wanted
    session = node.fetch_sessions.resume(request.session_id, request.session_epoch, by_id, now_ms)
    node.fetch_sessions.update(session, wanted, _forgotten(request))
    return session, list(session.partitions.values())


def _forgotten(request: FetchRequest) -> list[PartitionKey]:
    return [
        (topic.topic_id, topic.topic, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]


class _Fetch:
    """One fetch request: reads its partitions, and reads them again after each wait."""

    __slots__ = (
        "_answers",
        "_bytes",
        "_context",
        "_failed",
        "_in_slices",
        "_max_bytes",
        "_min_bytes",
        "_node",
        "_partitions",
        "_redirected",
        "_request",
        "_roles",
        "_seen_ends",
        "_session",
        "_to_send",
        "_unchecked",
    )

    def __init__(
        self,
        node: "Node",
        context: Context,
        request: FetchRequest,
        session: FetchSession | None,
        partitions: list[FetchPartition],
    ) -> None:
        self._node = node
        self._context = context
        self._request = request
        self._session = session
        self._partitions = partitions
        self._max_bytes = min(request.max_bytes, node.fetch_max_bytes)
        # A response that is full has nothing to wait for.
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._in_slices = len(partitions) > FEW_PARTITIONS
        self._answers: list[tuple[FetchPartition, PartitionData]] = []
        self._roles: list[LeaderRole | FollowerRole] = []
        """Of the partitions that were read without an error: those to wait for."""
        self._redirected = False
        """The client should read a partition from another replica: it must learn that at once."""
        self._seen_ends: list[LogPosition] = []
        """In slices: how far each of these could be read when it was."""
        self._bytes = 0
        self._failed = False
        self._to_send: list[tuple[Partition, PartitionData]] = []
        """In slices: the partitions whose responses have records."""
        self._unchecked: list[tuple[Partition, ReadCheck]] = []

    def work(self) -> Work[FetchResponse]:
        min_bytes = self._min_bytes
        may_wait = self._request.max_wait_ms > 0
        checks_left = MOST_CHECKS
        while True:
            yield from self._read()
            if self._unchecked and checks_left and not self._failed and self._bytes < max(min_bytes, 1):
                checks_left -= 1
                yield self._when_checked()
                continue
            for partition, check in self._unchecked:
                self._node.partitions.check(partition, check, _nothing)
            is_urgent = self._failed or self._redirected
            if is_urgent or self._bytes >= min_bytes or not self._roles or not may_wait:
                return (yield from self._response())
            may_wait = False
            # If a disk has just failed, the next read returns the error for each partition that is offline.
            with suppress(ApiError):
                yield self._when_enough_to_send()

    def _read(self) -> Work[None]:
        self._answers = []
        self._roles = []
        self._seen_ends = []
        self._to_send = []
        self._bytes = 0
        self._unchecked = []
        for wanted in self._partitions:
            self._answers.append((wanted, self._read_partition(wanted)))
            if self._in_slices:
                yield None

    def _when_checked(self) -> Pending[None]:
        """Completed when the bytes that must be checked before they are sent have been checked."""
        checked: Pending[None] = Pending()
        missing = len(self._unchecked)

        def one_more() -> None:
            nonlocal missing
            missing -= 1
            if missing == 0:
                checked.complete_once(None)

        for partition, check in self._unchecked:
            self._node.partitions.check(partition, check, one_more)
        return checked

    def _when_enough_to_send(self) -> Pending[None]:
        """Completed when there is enough to send, or the client has waited long enough."""
        wait = FetchWait(
            self._roles,
            self._min_bytes - self._bytes,
            committed_only=self._request.isolation_level == READ_COMMITTED,
            seen_ends=self._seen_ends if self._in_slices else None,
        )
        wait.start(self._node.clock, self._request.max_wait_ms)
        return wait.ended

    def _response(self) -> Work[FetchResponse]:
        session = self._session
        incremental = session is not None and self._request.session_epoch > INITIAL_EPOCH
        response = fetch_response(session.id if session is not None else NO_SESSION)
        served = []
        for wanted, answer in self._answers:
            has_data = (
                bool(answer.records)
                or answer.error_code != ErrorCode.NONE
                or answer.diverging_epoch.epoch >= 0
                or answer.preferred_read_replica >= 0
            )
            if has_data:
                served.append(wanted)
            if wanted.has_news(answer.high_watermark, answer.log_start_offset, has_data) or not incremental:
                _add(response, wanted, answer)
            if self._in_slices:
                yield None
        if self._failed and self._context.api_version >= FIRST_VERSION_WITH_LEADER_ADDRESSES:
            self._name_leaders(response)
        if session is not None:
            session.rotate(served)
        if self._in_slices:
            self._leave_out_closed()
        return response

    def _name_leaders(self, response: FetchResponse) -> None:
        named = (answer.current_leader.leader_id for _, answer in self._answers)
        response.node_endpoints = endpoints_of(
            self._node,
            self._context,
            named,
            lambda node_id, host, port, rack: NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack),
        )

    def _leave_out_closed(self) -> None:
        """A partition that was deleted after it was read has no file to send from."""
        for partition, answer in self._to_send:
            if partition.log.closed:
                answer.records = b""
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _read_partition(self, wanted: FetchPartition) -> PartitionData:
        node = self._node
        try:
            if self._context.api_version >= FIRST_VERSION_WITH_FOLLOWERS:
                role = node.partitions.readable(wanted.topic, wanted.topic_id, wanted.index)
            else:
                role = node.partitions.leader(wanted.topic, wanted.topic_id, wanted.index)
            partition = role.partition
            if not node.authorizer.allows(self._context, READ, TOPIC, partition.topic):
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"reading {partition.topic} is not allowed")
            partition.check_leader_epoch(wanted.current_leader_epoch)
            return self._read_from(role, partition, wanted)
        except ApiError as error:
            self._failed = True
            answer = _failed(wanted.index, error.code)
            hint_wanted = error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
            if hint_wanted and self._context.api_version >= FIRST_VERSION_WITH_LEADER_HINTS:
                leader_id, epoch = node.partitions.current_leader(wanted.topic, wanted.topic_id, wanted.index)
                answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
            return answer

    def _read_from(
        self, role: LeaderRole | FollowerRole, partition: Partition, wanted: FetchPartition
    ) -> PartitionData:
        request = self._request
        committed_only = request.isolation_level == READ_COMMITTED
        answer = partition_data(
            wanted.index,
            0,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            [] if committed_only else None,
            b"",
        )
        if wanted.last_fetched_epoch >= 0:
            partition.check_copied(wanted.fetch_offset)
            diverging = partition.diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset)
            if diverging is not None:
                self._failed = True
                answer.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
                return answer
        if self._request.rack_id:
            preferred = preferred_replica(self._node, role, self._request.rack_id, wanted.fetch_offset)
            if preferred is not None:
                self._redirected = True
                answer.preferred_read_replica = preferred
                return answer
        room = self._max_bytes - self._bytes
        self._roles.append(role)
        if self._in_slices:
            self._seen_ends.append(partition.readable_end(committed_only))
        try:
            data = partition.read(
                wanted.fetch_offset,
                min(wanted.max_bytes, max(room, 0)),
                at_least_one_batch=self._bytes == 0,
                committed_only=committed_only,
            )
            if data is not None and committed_only:
                answer.aborted_transactions = [
                    AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                    for aborted in partition.aborted_transactions(wanted.fetch_offset, data)
                ]
        except NotCheckedError as error:
            self._unchecked.append((partition, error.check))
            data = None
        if data is not None:
            answer.records = [data]
            if self._in_slices:
                self._to_send.append((partition, answer))
            self._bytes += len(data)
        return answer


def _failed(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=[], records=b""
    )


def _add(response: FetchResponse, wanted: FetchPartition, answer: PartitionData) -> None:
    """Adds a partition to the response; neighbours of one topic share an entry."""
    topics = response.responses
    if not topics or topics[-1].topic != wanted.topic or topics[-1].topic_id != wanted.topic_id:
        topics.append(topic_response(wanted.topic, wanted.topic_id or ZERO))
    topics[-1].partitions.append(answer)


def _nothing() -> None:
    pass
