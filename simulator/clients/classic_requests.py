"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of one classic member, asked and checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.heartbeat import HeartbeatRequest
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from simulator.clients.assignment import assigned, assignment, subscription
from simulator.clients.client import Scene, SimClient
from simulator.clients.coordinator import NOT_NOW
from simulator.clients.routes import Coordinator
from simulator.clients.routes import group as coordinator_of
from simulator.clients.wire import Lost, Wire
from simulator.group_ledger import GroupBook, MemberBook, Owned

PROTOCOL_TYPE = "consumer"
FIRST_JOIN_WITH_INSTANCES = 5
FIRST_SYNC_WITH_INSTANCES = 3
FIRST_HEARTBEAT_WITH_INSTANCES = 3
FIRST_LEAVE_OF_MANY = 3
OUT = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
FENCED = (ErrorCode.FENCED_INSTANCE_ID,)
JOIN_PATIENCE_MS = 6000.0


@dataclass(slots=True)
class Membership:
    """What a member knows about itself."""

    group_name: str
    group: GroupBook
    instance_id: str | None
    topics: Sequence[str]
    protocols: Sequence[str]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str = ""
    book: MemberBook | None = None
    generation: int = -1
    protocol: str = ""
    tells_generation: bool = False
    """Sends its generation when it joins, as members of a consumer group do: late requests are refused there."""

    def is_over(self, scene: Scene) -> bool:
        return scene.group(self.group_name) is not self.group


class ClassicRequests:
    """Each method is one attempt. It returns the result, or an error that a member must handle."""

    def __init__(self, client: SimClient) -> None:
        self._client = client
        self.gives_up_everything: Callable[[], None] = lambda: None
        """Called before it joins, or leaves."""

    async def join(self, member: Membership) -> JoinGroupResponse | ErrorCode:
        client = self._client
        known = self._known(member, await self._connected(member))
        self.gives_up_everything()
        asked_tick = client.scene.ledger.ticks.next()
        metadata = subscription(member.topics, member.generation if member.tells_generation else None)
        request = JoinGroupRequest(
            group_id=member.group.name,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in member.protocols],
        )
        patience_ms = member.rebalance_timeout_ms + JOIN_PATIENCE_MS
        oldest = 0 if member.instance_id is None else FIRST_JOIN_WITH_INSTANCES
        answer: JoinGroupResponse = await client.ask(
            request, _coordinator(member), at_least=oldest, timeout_ms=patience_ms
        )
        error = self._expect(
            answer.error_code, "JoinGroup", ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS, *OUT, *FENCED
        )
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            member.member_id = answer.member_id
        if error is not ErrorCode.NONE:
            return error
        member.member_id = answer.member_id
        member.generation = answer.generation_id
        member.protocol = answer.protocol_name or ""
        member.book = member.group.joined(
            known(), asked_tick, answer.generation_id, answer.member_id, member.instance_id
        )
        return answer

    async def sync(self, member: Membership, handed_in: Mapping[str, Owned]) -> Owned | ErrorCode:
        client, group = self._client, member.group
        known = self._known(member, await self._connected(member))
        assert member.book is not None
        was_replaced = member.book.replaced
        if handed_in:
            group.handed_in(member.generation, handed_in)
        request = SyncGroupRequest(
            group_id=group.name,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=member.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment(owned))
                for member_id, owned in handed_in.items()
            ],
        )
        oldest = 0 if member.instance_id is None else FIRST_SYNC_WITH_INSTANCES
        patience_ms = member.rebalance_timeout_ms + JOIN_PATIENCE_MS
        answer = await client.ask(request, _coordinator(member), at_least=oldest, timeout_ms=patience_ms)
        error = self._expect(answer.error_code, "SyncGroup", ErrorCode.REBALANCE_IN_PROGRESS, *OUT, *FENCED)
        if error is not ErrorCode.NONE:
            return error
        owned, floor = assigned(bytes(answer.assignment)), known()
        group.let_in(floor, member.generation, member.book, was_replaced, "SyncGroup")
        group.told(floor, member.generation, member.book, owned)
        return owned

    async def heartbeat(self, member: Membership) -> ErrorCode:
        """An answer without an error proves little: a coordinator also gives it while it is loading."""
        client, group = self._client, member.group
        await self._connected(member)
        request = HeartbeatRequest(
            group_id=group.name,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
        )
        oldest = 0 if member.instance_id is None else FIRST_HEARTBEAT_WITH_INSTANCES
        answer = await client.ask(request, _coordinator(member), at_least=oldest)
        return self._expect(answer.error_code, "Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS, *OUT, *FENCED)

    async def leave(self, member: Membership) -> None:
        client = self._client
        await self._connected(member)
        self.gives_up_everything()
        version = client.version(LeaveGroupRequest, 0 if member.instance_id is None else FIRST_LEAVE_OF_MANY)
        request = LeaveGroupRequest(group_id=member.group.name)
        if version >= FIRST_LEAVE_OF_MANY:
            request.members = [MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id)]
        else:
            request.member_id = member.member_id
        answer = await client.ask(request, _coordinator(member), at_least=version, at_most=version)
        self._expect(answer.error_code, "LeaveGroup", *OUT, *FENCED)
        for each in answer.members:
            self._expect(each.error_code, "LeaveGroup", *OUT, *FENCED)

    async def _connected(self, member: Membership) -> Wire:
        wire = await self._client.connected(_coordinator(member))
        if member.is_over(self._client.scene):
            raise Lost("a power loss may have lost the coordinator's state")
        return wire

    def _known(self, member: Membership, wire: Wire) -> Callable[[], int]:
        """For a request that is sent now: the earliest generation of its answer, unless its node has been deposed."""
        generation = member.group.assigned
        leadership = self._client.scene.ledger.coordinators.of_group(member.group.name)
        epoch = leadership.epoch_of(wire.node)
        return lambda: generation if leadership.is_current(epoch) else -1

    def _expect(self, code: int, what: str, *allowed: ErrorCode) -> ErrorCode:
        return self._client.expect(code, what, *NOT_NOW, *self._client.excuses, *allowed)


def _coordinator(member: Membership) -> Coordinator:
    return coordinator_of(member.group.name)
