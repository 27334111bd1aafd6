"""A classic group: members, generation, leader and state, and the checks of who may do what in it.

The group has no timers and sends no responses. Rebalances, sessions and requests change it through the methods at the
end.
"""

from collections.abc import Callable

from quire.coordinators.group.classic.member import Member, PendingJoinResponse, PendingSyncResponse, Protocols, size_of
from quire.coordinators.group.classic.protocol_vote import ProtocolVote
from quire.coordinators.group.classic.state import TRANSITIONS, ClassicState
from quire.coordinators.group.classic.subscribed_topics import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from quire.coordinators.group.group import CheckPartition, GroupType
from quire.coordinators.runtime.record import StateRecord, tombstone
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue

NO_GENERATION = -1


def fenced(instance_id: str | None) -> ApiError:
    return ApiError(
        ErrorCode.FENCED_INSTANCE_ID, f"another member uses group.instance.id {instance_id}: stop one of them"
    )


class ClassicGroup:
    __slots__ = (
        "_renew_session",
        "_topics",
        "_topics_generation",
        "_vote",
        "awaiting_join_count",
        "generation",
        "group_id",
        "is_initial_rebalance",
        "leader_id",
        "members",
        "new_member_added",
        "pending_members",
        "pending_sync_members",
        "protocol_name",
        "protocol_type",
        "size_bytes",
        "state",
        "state_since_ms",
        "static_members",
        "written",
    )

    def __init__(self, group_id: str, renew_session: Callable[[Member], None]) -> None:
        """Calls `renew_session` for members that commit offsets."""
        self.group_id = group_id
        self._renew_session = renew_session
        # What the log has.
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by group.instance.id."""
        self.state_since_ms = -1
        """-1 if the record is too old to have it."""
        self.written: GroupMetadataValue | None = None
        """The last record of the group, committed or about to be."""
        # What only this coordinator knows.
        self.state = ClassicState.EMPTY
        self.is_initial_rebalance = False
        """The group was empty: the join phase lasts at least `group.initial.rebalance.delay.ms`."""
        self.new_member_added = False
        """A member joined since that delay last started."""
        self.awaiting_join_count = 0
        self.size_bytes = 0
        """Of what the members sent when they joined."""
        self.pending_members: dict[str, None] = {}
        """Ids that clients got with MEMBER_ID_REQUIRED and have not joined with yet, oldest first."""
        self.pending_sync_members: dict[str, None] = {}
        """Members of this generation that have not sent SyncGroup yet."""
        self._vote = ProtocolVote()
        self._topics: frozenset[str] | None = None
        self._topics_generation = NO_GENERATION

    def __repr__(self) -> str:
        return f"ClassicGroup({self.group_id}, {self.state.value}, generation {self.generation}, {len(self.members)})"

    # --- The Group protocol class

    @property
    def type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool, api_version: int
    ) -> CheckPartition | None:
        if generation < 0 and self.is_empty:
            return None  # An admin client, or a consumer that assigns itself.
        if generation >= 0 or member_id or instance_id is not None:
            member = self.check_member(member_id, instance_id)
            self.check_generation(generation)
            if not is_transactional and self.state is not ClassicState.COMPLETING_REBALANCE:
                self._renew_session(member)
        elif not is_transactional and not self.is_empty:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id} has members: commit as one, or stop them first"
            )
        if not is_transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the assignment is not known yet: commit after SyncGroup")
        return None

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Every client may read the offsets of a classic group."""

    def check_delete(self) -> None:
        if not self.is_empty:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} has members: stop them first")

    def is_subscribed_to(self, topic: str) -> bool:
        if not self.members:
            return False
        topics = self._subscribed_topics()
        return topics is None or topic in topics

    def offsets_unused_since(self, commit_ms: int) -> int | None:
        """An offset that is committed into a group that has been empty for long is kept for the full retention, too.
        (Kafka counts from when the group became empty, and so deletes offsets that were reset late at once.)"""
        if not self.protocol_type:
            return commit_ms
        if self.is_empty:
            return max(commit_ms, self.state_since_ms)
        if self.state is ClassicState.STABLE and self._subscribed_topics() is not None:
            return commit_ms
        return None

    def tombstones(self) -> list[StateRecord]:
        return [tombstone(GroupMetadataKey(group=self.group_id))]

    def _subscribed_topics(self) -> frozenset[str] | None:
        """Of the current generation; None if members do not send their topics or the bytes cannot be decoded."""
        if self._topics_generation != self.generation:
            self._topics_generation = self.generation
            self._topics = None
            if self.protocol_type == CONSUMER_PROTOCOL_TYPE and self.protocol_name is not None:
                name = self.protocol_name
                self._topics = subscribed_topics(member.protocols.get(name, b"") for member in self.members.values())
        return self._topics

    # --- Queries and checks

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of all members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def assigned_generation(self) -> int:
        """The last generation whose leader has sent an assignment."""
        return NO_GENERATION if self.written is None else self.written.generation

    @property
    def is_leaderless(self) -> bool:
        """The record of a group that was downgraded has members but no leader. Such a group must rebalance."""
        return bool(self.members) and self.leader_id is None

    @property
    def all_members_joined(self) -> bool:
        return self.awaiting_join_count == len(self.members) and not self.pending_members

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols may join."""
        if not self.members:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and self._vote.supports_any(protocols)

    def preferred_protocol(self) -> str:
        return self._vote.winner([member.protocols for member in self.members.values()])

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        member = self.members.get(member_id)
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                member = None
            elif current != member_id:
                raise fenced(instance_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"not a member of group {self.group_id}: join again")
        return member

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION, f"group {self.group_id} is in generation {self.generation}: join again"
            )

    # --- Changes

    def move_to(self, state: ClassicState, now_ms: int) -> None:
        assert state in TRANSITIONS[self.state], f"{self!r} cannot become {state.value}"
        self.state = state
        self.state_since_ms = now_ms

    def add(self, member: Member, protocol_type: str) -> None:
        assert member.member_id not in self.members, f"{member!r} is in {self!r} already"
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, f"{member.instance_id} is in {self!r} already"
            self.static_members[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self.pending_members.pop(member.member_id, None)
        self._vote.enter(member.protocols)
        self.size_bytes += member.size_bytes
        if member.awaiting_join is not None:
            self.awaiting_join_count += 1
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member: Member) -> None:
        """The caller must have completed the requests of the member before."""
        assert member.awaiting_join is None and member.awaiting_sync is None, f"{member!r} still waits"
        del self.members[member.member_id]
        self.pending_sync_members.pop(member.member_id, None)
        self._vote.withdraw(member.protocols)
        self.size_bytes -= member.size_bytes
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def replace(self, old: Member, new: Member) -> None:
        """Replaces a static member by its next incarnation, which becomes leader if the old one was."""
        assert old.instance_id == new.instance_id and old.instance_id is not None
        was_leader = self.leader_id == old.member_id
        self.remove(old)
        self.add(new, self.protocol_type)
        if was_leader:
            self.leader_id = new.member_id
        self._topics_generation = NO_GENERATION

    def update_protocols(self, member: Member, protocols: Protocols) -> None:
        self._vote.withdraw(member.protocols)
        self.size_bytes += size_of(protocols) - size_of(member.protocols)
        member.protocols = protocols
        self._vote.enter(protocols)

    def await_join(self, member: Member, response: PendingJoinResponse) -> PendingJoinResponse | None:
        """Returns the earlier request of the same member, which waits on a connection that the client gave up."""
        displaced = self.take_join(member)
        member.awaiting_join = response
        self.awaiting_join_count += 1
        return displaced

    def take_join(self, member: Member) -> PendingJoinResponse | None:
        """The caller must complete the request that it takes."""
        waiting, member.awaiting_join = member.awaiting_join, None
        if waiting is not None:
            self.awaiting_join_count -= 1
        return waiting

    def take_sync(self, member: Member) -> PendingSyncResponse | None:
        waiting, member.awaiting_sync = member.awaiting_sync, None
        return waiting

    def take_all_waiting(self) -> list[PendingJoinResponse | PendingSyncResponse]:
        members = self.members.values()
        return [taken for member in members for taken in (self.take_join(member), self.take_sync(member)) if taken]

    def elect_joined_leader(self) -> bool:
        """Keeps the leader if it has joined, or elects the first member that has. False if no member has joined."""
        leader = self.members.get(self.leader_id or "")
        if leader is None or leader.awaiting_join is None:
            joined = (member_id for member_id, member in self.members.items() if member.awaiting_join is not None)
            self.leader_id = next(joined, self.leader_id)
        return self.awaiting_join_count > 0

    def start_generation(self, now_ms: int) -> None:
        """All current members are part of the next generation."""
        self.generation += 1
        self.is_initial_rebalance = False
        self.pending_sync_members.clear()
        if self.members:
            self.protocol_name = self.preferred_protocol()
            self.move_to(ClassicState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.move_to(ClassicState.EMPTY, now_ms)
