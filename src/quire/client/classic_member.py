"""A member of a group in the classic protocol.

A rebalance takes two steps. Every member joins with its subscription; when all have, the coordinator makes one of them
the leader and tells it the subscriptions of all. Then every member asks for its assignment (SyncGroup), and the
leader's request contains the assignments of all. Between rebalances a heartbeat keeps the member in the group, and its
response announces the next rebalance. This member is eager: it gives up all partitions before it joins again.

    outside ──join, sync──▶ member ──heartbeat: a rebalance──▶ gives up all ──join, sync──▶ member
"""

from collections.abc import Sequence
from struct import Struct
from typing import TypeVar

from quire.client.classic_assignors import ASSIGNORS, Assignments
from quire.client.cluster import Cluster
from quire.client.coordinators import ASK_AGAIN, CoordinatorType, ask_coordinator
from quire.client.group_member import FENCED, FencedError
from quire.client.group_offsets import Committer
from quire.client.offsets import TopicPartition
from quire.protocol.codec import decoder, encoder
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from quire.protocol.schema import Message
from quire.steps import Steps

PROTOCOL_TYPE = "consumer"
SESSION_TIMEOUT_MS = 45_000
HEARTBEAT_INTERVAL_MS = 3_000.0
WAIT_FOR_OTHERS_MS = 5_000.0
"""How much longer than the rebalance timeout the coordinator may take to answer a member that joins."""
LEAVE_IN_BATCHES = (3, 5)
NO_GENERATION = -1
CONTENT_VERSION = 0
"""The version of subscriptions and assignments; later ones add what only cooperative members use."""

_VERSION = Struct(">h")

A = TypeVar("A", JoinGroupResponse, SyncGroupResponse, HeartbeatResponse, LeaveGroupResponse)
M = TypeVar("M", bound=Message)


class ClassicMember:
    def __init__(self, cluster: Cluster, group_id: str, topics: Sequence[str], rebalance_timeout_ms: int) -> None:
        self.interval_ms = HEARTBEAT_INTERVAL_MS
        self._cluster = cluster
        self._group_id = group_id
        self._topics = list(topics)
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._member_id = ""
        self._generation = NO_GENERATION
        self._must_join = True

    @property
    def committer(self) -> Committer | None:
        return None if self._generation == NO_GENERATION else Committer(self._member_id, self._generation)

    def exchange(self) -> Steps[list[TopicPartition] | None]:
        try:
            if self._must_join:
                return (yield from self._rebalance())
            return (yield from self._heartbeat())
        except ApiError as error:
            if error.code not in FENCED:
                raise
            self._generation, self._must_join = NO_GENERATION, True
            if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            raise FencedError from error

    def reads(self) -> None:
        """The classic protocol does not report it."""

    def leave(self) -> Steps[None]:
        if self._member_id:
            request = LeaveGroupRequest(group_id=self._group_id, members=[MemberIdentity(member_id=self._member_id)])
            yield from self._ask(request, LeaveGroupResponse, versions=LEAVE_IN_BATCHES)

    def _heartbeat(self) -> Steps[list[TopicPartition] | None]:
        request = HeartbeatRequest(group_id=self._group_id, generation_id=self._generation, member_id=self._member_id)
        response = yield from self._ask(request, HeartbeatResponse)
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._must_join = True
            return []  # before the next exchange, which joins again
        self._raise_error_of(response)
        return None

    def _rebalance(self) -> Steps[list[TopicPartition] | None]:
        joined = yield from self._join()
        assignments: Assignments = {}
        if joined.leader == self._member_id and not joined.skip_assignment:
            assignments = yield from self._assign(joined)
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=_assignment(partitions))
                for member, partitions in assignments.items()
            ],
        )
        response = yield from self._ask(request, SyncGroupResponse, timeout_ms=self._patience_ms)
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return []  # another member has joined meanwhile: join again
        self._raise_error_of(response)
        self._must_join = False
        return _partitions(response.assignment)

    def _join(self) -> Steps[JoinGroupResponse]:
        """A new member gets its id first, and joins with it."""
        while True:
            request = JoinGroupRequest(
                group_id=self._group_id,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=self._rebalance_timeout_ms,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[
                    JoinGroupRequestProtocol(name=name, metadata=_subscription(self._topics)) for name in ASSIGNORS
                ],
            )
            response = yield from self._ask(request, JoinGroupResponse, timeout_ms=self._patience_ms)
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id
                continue
            if response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                raise ApiError(
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    f"group {self._group_id} cannot be joined: its members have neither of the assignors "
                    f"{' and '.join(ASSIGNORS)} in common with this one (partition.assignment.strategy)",
                )
            self._raise_error_of(response)
            self._member_id, self._generation = response.member_id, response.generation_id
            return response

    def _assign(self, joined: JoinGroupResponse) -> Steps[Assignments]:
        """The leader's assignment for all members."""
        subscriptions = {
            member.member_id: _decoded(ConsumerProtocolSubscription, member.metadata).topics
            for member in joined.members
        }
        topics = sorted({topic for wanted in subscriptions.values() for topic in wanted})
        yield from self._cluster.refresh(topics)
        known = self._cluster.metadata.topics
        counts = {topic: len(known[topic].partitions) for topic in topics if topic in known}
        return ASSIGNORS[joined.protocol_name or ""](subscriptions, counts)

    @property
    def _patience_ms(self) -> float:
        return self._rebalance_timeout_ms + WAIT_FOR_OTHERS_MS

    def _ask(
        self,
        request: Message,
        response: type[A],
        *,
        versions: tuple[int, int] | None = None,
        timeout_ms: float | None = None,
    ) -> Steps[A]:
        return (
            yield from ask_coordinator(
                self._cluster,
                CoordinatorType.GROUP,
                self._group_id,
                request,
                response,
                lambda answer: ErrorCode(answer.error_code) if answer.error_code in ASK_AGAIN else ErrorCode.NONE,
                versions=versions,
                timeout_ms=timeout_ms,
            )
        )

    def _raise_error_of(self, response: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse) -> None:
        if response.error_code:
            code = ErrorCode(response.error_code)
            raise ApiError(code, f"group {self._group_id} cannot be joined ({code.name})")


def _subscription(topics: Sequence[str]) -> bytes:
    return _encoded(ConsumerProtocolSubscription(topics=list(topics)))


def _assignment(partitions: Sequence[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return _encoded(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes)
                for topic, indexes in by_topic.items()
            ]
        )
    )


def _partitions(assignment: bytes) -> list[TopicPartition]:
    """A member without partitions gets empty bytes."""
    if not assignment:
        return []
    return [
        TopicPartition(topic.topic, partition)
        for topic in _decoded(ConsumerProtocolAssignment, assignment).assigned_partitions
        for partition in topic.partitions
    ]


def _encoded(content: Message) -> bytes:
    out = bytearray(_VERSION.pack(CONTENT_VERSION))
    encoder(type(content), CONTENT_VERSION)(content, out)
    return bytes(out)


def _decoded(kind: type[M], data: bytes) -> M:
    """Later versions begin like the newest one that is known."""
    version = min(_VERSION.unpack_from(data)[0], kind.VERSIONS[1])
    content: M = decoder(kind, version)(data, _VERSION.size)[0]
    return content
