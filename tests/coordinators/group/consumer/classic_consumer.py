"""A consumer of the classic protocol, which may share a group with consumers of the newer protocol.

An eager consumer gives up all partitions before it joins. A cooperative one reports what it owns, gives up what it was
not assigned, and joins again. A leader assigns partitions round robin; if it is cooperative, it assigns none that
another member still owns.
"""

from typing import Any

from quire.coordinators.runtime.machine import Caller
from quire.pending import Pending
from quire.protocol.codec import decoder, encoder
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from quire.protocol.messages.heartbeat import HeartbeatRequest
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.coordinators.group.consumer.consumer_shard import GROUP, ConsumerShard

JOIN, SYNC, BEAT, LEAVE = 9, 5, 4, 5
"""The versions of its requests."""
SUBSCRIPTION = 3
Partitions = dict[str, set[int]]


class ClassicConsumer:
    def __init__(
        self, shard: ConsumerShard, name: str, topics: tuple[str, ...], instance_id: str | None, is_cooperative: bool
    ) -> None:
        self.shard = shard
        self.name = name
        self.topics = topics
        self.instance_id = instance_id
        self.protocol = "cooperative-sticky" if is_cooperative else "range"
        self.member_id = ""
        self.generation = -1
        self.has: Partitions = {}
        self.gave_up = False

    @property
    def is_cooperative(self) -> bool:
        return self.protocol == "cooperative-sticky"

    def join(self) -> Pending[Any]:
        if not self.is_cooperative:
            self.has = {}
        joining = self._run("join_group", self._join_request(), JOIN)
        if joining.done and self._code(joining.value) is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joining.value.member_id
            joining = self._run("join_group", self._join_request(), JOIN)
        return joining

    def takes_lead(self, joining: Pending[Any]) -> bool:
        return joining.done and isinstance(joining.value, JoinGroupResponse) and bool(joining.value.members)

    def sync(self, joining: Pending[Any]) -> str:
        """After the response to its JoinGroup, if there is one: the assignment, or the error."""
        if not joining.done:
            return "has to wait"
        refusal, syncing = self.ask_for_assignment(joining.value)
        if syncing is None:
            return refusal
        return self.take_assignment(syncing.value) if syncing.done else "has to wait"

    def ask_for_assignment(self, joined: Any) -> tuple[str, Pending[Any] | None]:
        """The response to its JoinGroup, or the error."""
        code = self._code(joined)
        if code is not ErrorCode.NONE:
            return self._refused(code), None
        self.member_id, self.generation = joined.member_id, joined.generation_id
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=self._share_out(joined),
        )
        return "", self._run("sync_group", request, SYNC)

    def take_assignment(self, synced: Any) -> str:
        code = self._code(synced)
        if code is not ErrorCode.NONE:
            return self._refused(code)
        before, self.has = self.has, read_assignment(synced)
        # It must join again, so that the leader can assign what it gave up.
        self.gave_up = any(numbers - self.has.get(topic, set()) for topic, numbers in before.items())
        return f"generation {self.generation}, has {show(self.has)}"

    def beat(self) -> str:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        code = self._code(self._run("heartbeat", request, BEAT).value)
        return "stay" if code is ErrorCode.NONE else self._refused(code)

    def leave(self) -> str:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        answer = self._run("leave_group", request, LEAVE).value
        return "left" if self._code(answer) is ErrorCode.NONE else self._code(answer).name

    def _refused(self, code: ErrorCode) -> str:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID):
            self.has, self.generation = {}, -1
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        return code.name

    def _join_request(self) -> JoinGroupRequest:
        subscription = ConsumerProtocolSubscription(
            topics=list(self.topics),
            owned_partitions=[
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=sorted(numbers))
                for topic, numbers in sorted(self.has.items())
            ],
            generation_id=self.generation,
        )
        metadata = bytearray(SUBSCRIPTION.to_bytes(2))
        encoder(ConsumerProtocolSubscription, SUBSCRIPTION)(subscription, metadata)
        return JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self.protocol, metadata=bytes(metadata))],
        )

    def _share_out(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        members = sorted(member.member_id for member in joined.members)
        shares: dict[str, Partitions] = {member_id: {} for member_id in members}
        owners = owners_of(joined)
        everything = [(topic, number) for topic in self.topics for number in self._partitions(topic)]
        for turn, (topic, number) in enumerate(everything if members else []):
            receiver = members[turn % len(members)]
            if owners.get((topic, number), receiver) == receiver:
                shares[receiver].setdefault(topic, set()).add(number)
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(share))
            for member_id, share in shares.items()
        ]

    def _partitions(self, topic: str) -> list[int]:
        known = self.shard.image.topic(topic)
        return [] if known is None else sorted(known.partitions)

    def _run(self, api: str, request: Any, version: int) -> Pending[Any]:
        method = getattr(self.shard.machine, api)
        caller = Caller(self.name, "/127.0.0.1", version)
        return self.shard.run(lambda now_ms: method(request, caller, now_ms))

    def _code(self, answer: Any) -> ErrorCode:
        if isinstance(answer, ApiError):
            return answer.code
        if isinstance(answer, LeaveGroupResponse) and answer.members:
            return ErrorCode(answer.members[0].error_code)
        return ErrorCode(answer.error_code)


def owners_of(joined: JoinGroupResponse) -> dict[tuple[str, int], str]:
    """The partitions that members report to own. Eager members own none when they join."""
    owners: dict[tuple[str, int], str] = {}
    for member in joined.members:
        said: ConsumerProtocolSubscription = decoder(ConsumerProtocolSubscription, SUBSCRIPTION)(member.metadata, 2)[0]
        for each in said.owned_partitions:
            owners.update(((each.topic, number), member.member_id) for number in each.partitions)
    return owners


def write_assignment(share: Partitions) -> bytes:
    out = bytearray(b"\0\1")
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=sorted(numbers))
            for topic, numbers in sorted(share.items())
        ]
    )
    encoder(ConsumerProtocolAssignment, 1)(message, out)
    return bytes(out)


def read_assignment(synced: SyncGroupResponse) -> Partitions:
    version = int.from_bytes(synced.assignment[:2])
    message: ConsumerProtocolAssignment = decoder(ConsumerProtocolAssignment, version)(synced.assignment, 2)[0]
    return {each.topic: set(each.partitions) for each in message.assigned_partitions}


def show(has: Partitions) -> str:
    shown = [f"{topic} {','.join(map(str, sorted(numbers)))}" for topic, numbers in sorted(has.items())]
    return "; ".join(shown) or "nothing"
