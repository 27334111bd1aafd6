"""A whole group coordinator in memory: a method for each API, which returns the response or the error code."""

from collections.abc import Mapping
from typing import Any

from quire.coordinators.group.machine import GroupMachine
from quire.coordinators.runtime.machine import Caller
from quire.metadata.image import ClusterImage
from quire.pending import Pending
from quire.protocol.codec import encoder
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from quire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from quire.protocol.messages.list_groups import ListGroupsRequest
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from quire.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from quire.protocol.schema import Message
from tests.coordinators.sim_shard import SimShard


class GroupShard(SimShard[GroupMachine]):
    def __init__(self, image: ClusterImage, settings: Mapping[str, str] | None = None) -> None:
        at_once = {"group.initial.rebalance.delay.ms": "0"}
        super().__init__(GroupMachine, at_once | dict(settings or {}), image=image)

    def ask(self, api: str, request: Message, version: int) -> Pending[Any]:
        """Calls the machine's method `api` with the request."""
        method = getattr(self.machine, api)
        return self.run(lambda now_ms: method(request, Caller("client", "/host", version), now_ms))

    def outcome(self, api: str, request: Message, version: int) -> ErrorCode | Any:
        """The response, or the code if it is an error."""
        return code_or_answer(self.ask(api, request, version).value)

    # --- Offsets

    def commit_offset(
        self, group_id: str, offset: int, *, topic: str = "t", member: str = "", generation: int = -1, version: int = 9
    ) -> ErrorCode:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=group_id,
            member_id=member,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        answer = self.outcome("offset_commit", request, version)
        return answer if isinstance(answer, ErrorCode) else ErrorCode(answer.topics[0].partitions[0].error_code)

    def offsets(self, group_id: str, *, member: str | None = None, epoch: int = -1) -> dict[str, int] | ErrorCode:
        """The result for partition 0 of each topic."""
        request = OffsetFetchRequestGroup(group_id=group_id, member_id=member, member_epoch=epoch, topics=None)
        caller = Caller("client", "/host", 9)
        answer = code_or_answer(
            self.run(lambda now_ms: self.machine.offset_fetch_group(request, False, caller, now_ms)).value
        )
        if isinstance(answer, ErrorCode):
            return answer
        return {topic.name: topic.partitions[0].committed_offset for topic in answer.topics}

    # --- Members of classic groups

    def join_classic(self, group_id: str, *topics: str, protocol_type: str = "consumer") -> Pending[Any]:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription(*topics))],
        )
        return self.ask("join_group", request, 3)

    def stable_classic(self, group_id: str, *topics: str, protocol_type: str = "consumer") -> str:
        """Creates a stable group of one member in generation 1, and returns the member's id."""
        joining = self.join_classic(group_id, *topics, protocol_type=protocol_type)
        self.wait(0)
        joined = joining.value
        assert joined.error_code == ErrorCode.NONE and joined.generation_id == 1
        mine = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")
        synced = self.ask(
            "sync_group",
            SyncGroupRequest(group_id=group_id, generation_id=1, member_id=joined.member_id, assignments=[mine]),
            3,
        ).value
        assert synced.error_code == ErrorCode.NONE
        assert isinstance(joined.member_id, str)
        return joined.member_id

    # --- Members of consumer groups

    def beat_as_consumer(
        self, group_id: str, member: str, epoch: int, *topics: str
    ) -> ConsumerGroupHeartbeatResponse | ErrorCode:
        """An epoch of 0 joins and subscribes to `topics`, -1 leaves."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=list(topics) if epoch == 0 else None,
            topic_partitions=[] if epoch == 0 else None,
        )
        answer = self.outcome("consumer_group_heartbeat", request, 1)
        assert isinstance(answer, ErrorCode | ConsumerGroupHeartbeatResponse)
        return answer

    def join_consumer(self, group_id: str, member: str, *topics: str) -> int:
        """The member epoch after it has joined."""
        answer = self.beat_as_consumer(group_id, member, 0, *topics)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse), answer
        return answer.member_epoch

    # --- Administration

    def listed(self, *states: str) -> dict[str, tuple[str, str]]:
        """State and type of each group."""
        groups = self.run(
            lambda now_ms: self.machine.list_groups(ListGroupsRequest(states_filter=list(states)), now_ms)
        ).value
        assert not isinstance(groups, ApiError)
        return {group.group_id: (group.group_state, group.group_type) for group in groups}

    def delete(self, group_id: str) -> ErrorCode:
        deleted: bool | ApiError = False
        while deleted is False:
            deleted = self.run(lambda now_ms: self.machine.delete_group(group_id, now_ms)).value
        return deleted.code if isinstance(deleted, ApiError) else ErrorCode.NONE


def subscription(*topics: str) -> bytes:
    """A subscription in the classic protocol: a version, then the topics."""
    out = bytearray(b"\0\1")
    encoder(ConsumerProtocolSubscription, 1)(ConsumerProtocolSubscription(topics=list(topics)), out)
    return bytes(out)


def code_or_answer(value: Any) -> ErrorCode | Any:
    return value.code if isinstance(value, ApiError) else value
