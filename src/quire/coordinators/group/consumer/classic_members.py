"""Members of a consumer group that still speak the classic protocol, while the group is on its way.

To them the group is a classic one in which somebody else leads: they join, and are answered at once, in the generation
that is their member epoch; they sync, and get what the coordinator gave them; they are told to join again when there is
a newer target or it is time for one, when they have something to give up, or when what they wait for is free. What a
JoinGroup says about owned partitions is what a heartbeat of the new protocol says. A member that does not join or sync
in time is out.
"""

from collections.abc import Callable

from quire.coordinators.group.classic.member_id import new_member_id
from quire.coordinators.group.consumer import embedded_protocol
from quire.coordinators.group.consumer.admission import check_size, known_bearer, replace_static
from quire.coordinators.group.consumer.changes import GroupChanges
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.draft import Draft
from quire.coordinators.group.consumer.member import JOINING_EPOCH, Member, MemberState, Subscription
from quire.coordinators.group.consumer.migration import classic_assignment, classic_metadata
from quire.coordinators.group.consumer.sessions import Sessions
from quire.coordinators.runtime.machine import Caller, Surroundings
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import Result
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

MEMBER_ID_REQUIRED_VERSION = 4
BATCHED_LEAVE_VERSION = 3

Remove = Callable[[Draft, list[Member], int], list[StateRecord]]
"""(draft, members, now) -> what is to be written for these members to be gone; the group may become a classic one."""
Downgrade = Callable[[Draft, list[Member], int, bool], list[StateRecord] | None]
"""(draft, remaining members, now, whether they have to rebalance) -> what is to be written for the group to be classic,
with these members; None where it cannot be."""


class ClassicMembers:
    __slots__ = (
        "_changes",
        "_downgrade",
        "_image",
        "_joining",
        "_random",
        "_remove",
        "_sessions",
        "_settings",
        "_timers",
    )

    def __init__(
        self,
        surroundings: Surroundings,
        changes: GroupChanges,
        sessions: Sessions,
        remove: Remove,
        downgrade: Downgrade,
    ) -> None:
        self._random = surroundings.random
        self._timers = surroundings.timers
        self._image = surroundings.image
        self._changes = changes
        self._settings = changes.settings
        self._sessions = sessions
        self._remove = remove
        self._downgrade = downgrade
        self._joining: dict[tuple[str, str], None] = {}
        """Members that were told to join again, and have so long to do it."""

    # Requests

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        self._check_join(group, request)
        subscription = _read_subscription(request)
        is_static = request.group_instance_id is not None
        if not request.member_id and not is_static and caller.api_version >= MEMBER_ID_REQUIRED_VERSION:
            new_id = new_member_id(caller.client_id, self._random)
            return Result(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=new_id))
        draft = Draft(group)
        bearer = None if request.group_instance_id is None else group.static_member(request.group_instance_id)
        before = self._admit(draft, request, caller)
        said = _said(before.subscription, request, caller, subscription)
        changed = self._changes.write_member(draft, before, said, now_ms)
        if bearer is not None and bearer.member_id != before.member_id:
            remaining = list(draft.group.members.values())
            as_classic = self._downgrade(draft, remaining, now_ms, not draft.group.is_settled)
            if as_classic is not None:
                # It was the last of the new protocol, and has come back as one of the old.
                rejoin = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=request.member_id)
                return Result(rejoin, as_classic)
        self._changes.write_target(draft, now_ms)
        # As with heartbeats: what was said before the newest epoch was known confirms nothing.
        is_late = subscription.generation_id not in (embedded_protocol.NO_GENERATION, before.current.member_epoch)
        is_late = is_late and before.current.member_epoch > JOINING_EPOCH
        owned = None if is_late else embedded_protocol.owned_by(subscription, self._image())
        member = self._changes.write_reconciled(draft, before.member_id, owned, subscription_changed=changed)
        self._changes.keep_freshness(draft)
        self._joined(group.group_id, member, now_ms)
        return Result(_joined_response(member), draft.records)

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, caller: Caller, now_ms: int
    ) -> Result[SyncGroupResponse]:
        member = self._check_member(group, request.member_id, request.group_instance_id, request.generation_id)
        classic = member.subscription.classic
        assert classic is not None
        protocol = classic.supported_protocols[0].name
        if request.protocol_type not in (None, embedded_protocol.PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            protocol,
        ):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the protocol of this member is {protocol}")
        if self._is_behind(group, member, now_ms) and member.current.state != MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group.group_id, member)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group has a newer assignment: join again")
        self._timers.cancel(("sync", group.group_id, member.member_id))
        self.watch(group.group_id, member, now_ms)
        return Result(
            SyncGroupResponse(
                protocol_type=embedded_protocol.PROTOCOL_TYPE,
                protocol_name=protocol,
                assignment=classic_assignment(classic, member.current.assigned, self._image()),
            )
        )

    def heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[HeartbeatResponse]:
        member = self._check_member(group, request.member_id, request.group_instance_id, request.generation_id)
        self.watch(group.group_id, member, now_ms)
        draft = Draft(group)
        self._changes.write_topics(draft, now_ms)
        self._changes.keep_freshness(draft)
        if self._is_behind(draft.group, member, now_ms) or self._can_go_on(group, member):
            self._expect_join(group.group_id, member)
            return Result(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), draft.records)
        return Result(HeartbeatResponse(), draft.records)

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, caller: Caller, now_ms: int
    ) -> Result[LeaveGroupResponse]:
        is_batched = caller.api_version >= BATCHED_LEAVE_VERSION
        identities = request.members if is_batched else [MemberIdentity(member_id=request.member_id)]
        leaving: dict[str, Member] = {}
        errors: list[ErrorCode] = []
        for identity in identities:
            try:
                member = _leaving_member(group, identity)
                leaving[member.member_id] = member
                errors.append(ErrorCode.NONE)
            except ApiError as error:
                errors.append(error.code)
        records = self._remove(Draft(group), list(leaving.values()), now_ms) if leaving else []
        if not is_batched:
            return Result(LeaveGroupResponse(error_code=errors[0]), records)
        left = [
            MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error)
            for each, error in zip(identities, errors, strict=True)
        ]
        return Result(LeaveGroupResponse(members=left), records)

    # Time

    def watch(self, group_id: str, member: Member, now_ms: int) -> None:
        """It has been heard, or has just come under this coordinator's eyes."""
        assert member.subscription.classic is not None
        self._sessions.heard(group_id, member.member_id, member.subscription.classic.session_timeout_ms, now_ms)

    def forget(self, group_id: str, member_id: str) -> None:
        self._joining.pop((group_id, member_id), None)
        self._timers.cancel(("join", group_id, member_id))
        self._timers.cancel(("sync", group_id, member_id))

    def _joined(self, group_id: str, member: Member, now_ms: int) -> None:
        self.forget(group_id, member.member_id)
        self.watch(group_id, member, now_ms)
        self._fence_after("sync", group_id, member)

    def _expect_join(self, group_id: str, member: Member) -> None:
        key = group_id, member.member_id
        if key not in self._joining:
            self._joining[key] = None
            self._fence_after("join", group_id, member)

    def _fence_after(self, what: str, group_id: str, member: Member) -> None:
        timeout_ms = max(0, member.subscription.rebalance_timeout_ms)
        self._timers.schedule(
            (what, group_id, member.member_id),
            timeout_ms,
            lambda now_ms: self._sessions.expire(group_id, member.member_id, now_ms),
        )

    # Who asks, and what it has to know

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> None:
        shortest_ms, longest_ms = self._settings.classic_session_timeouts_ms
        if not shortest_ms <= request.session_timeout_ms <= longest_ms:
            raise ApiError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"session.timeout.ms={request.session_timeout_ms} is not allowed: "
                f"choose from {shortest_ms} to {longest_ms}",
            )
        check_size(Draft(group), request.member_id, request.group_instance_id, self._settings.most_members)
        others = [each for each in group.members.values() if each.is_classic and each.member_id != request.member_id]
        offered = {protocol.name for protocol in request.protocols}
        for other in others:
            assert other.subscription.classic is not None
            offered &= {protocol.name for protocol in other.subscription.classic.supported_protocols}
        if request.protocol_type != embedded_protocol.PROTOCOL_TYPE or not offered:
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group.group_id} has other members, who do not support these protocols: offer one of theirs",
            )

    def _admit(self, draft: Draft, request: JoinGroupRequest, caller: Caller) -> Member:
        instance_id = request.group_instance_id
        known_as = caller.client_id if instance_id is None else instance_id
        member_id = request.member_id or new_member_id(known_as, self._random)
        if instance_id is None:
            return draft.group.members.get(member_id) or Member(member_id)
        if request.member_id:
            return known_bearer(draft, instance_id, member_id)
        bearer = draft.group.static_member(instance_id)
        return Member(member_id) if bearer is None else replace_static(draft, bearer, member_id)

    def _check_member(self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> Member:
        member = group.member(member_id) if instance_id is None else known_bearer(Draft(group), instance_id, member_id)
        _check_classic(member)
        if member.current.member_epoch != generation:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION,
                f"member {member_id} is in generation {member.current.member_epoch}, not {generation}: join again",
            )
        return member

    def _is_behind(self, group: ConsumerGroup, member: Member, now_ms: int) -> bool:
        """Whether there is a newer target than its own, or would be if it joined: where nobody is left who speaks the
        new protocol, nobody else makes one."""
        return member.current.member_epoch < group.assignment_epoch or self._changes.is_target_due(group, now_ms)

    def _can_go_on(self, group: ConsumerGroup, member: Member) -> bool:
        """Whether joining again brings it further: it has something to give up, or nothing to wait for any more."""
        if member.current.state == MemberState.UNREVOKED_PARTITIONS:
            return True
        if member.current.state != MemberState.UNRELEASED_PARTITIONS:
            return False
        is_free = group.is_free_for(member.member_id)
        return all(
            is_free(topic_id, partition)
            for topic_id, partitions in group.targets.get(member.member_id, {}).items()
            for partition in partitions
        )


def _said(
    known: Subscription, request: JoinGroupRequest, caller: Caller, subscription: ConsumerProtocolSubscription
) -> Subscription:
    return Subscription(
        client_id=caller.client_id,
        client_host=caller.client_host,
        topic_names=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=(
            request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms
        ),
        instance_id=known.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or known.rack_id,
        classic=classic_metadata(
            request.session_timeout_ms, [(each.name, each.metadata) for each in request.protocols]
        ),
    )


def _read_subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return embedded_protocol.read_subscription(request.protocols[0].metadata)
    except ProtocolError:
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the subscription of a consumer cannot be read: is it one?"
        ) from None


def _joined_response(member: Member) -> JoinGroupResponse:
    assert member.subscription.classic is not None
    return JoinGroupResponse(
        generation_id=member.current.member_epoch,
        protocol_type=embedded_protocol.PROTOCOL_TYPE,
        protocol_name=member.subscription.classic.supported_protocols[0].name,
        member_id=member.member_id,
    )


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    """An administrator who removes a static member knows its name, but not its present id, nor its protocol."""
    if identity.group_instance_id is None:
        member = group.member(identity.member_id)
        _check_classic(member)
        return member
    if identity.member_id:
        member = known_bearer(Draft(group), identity.group_instance_id, identity.member_id)
        _check_classic(member)
        return member
    bearer = group.static_member(identity.group_instance_id)
    if bearer is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {identity.group_instance_id} is unknown.")
    return bearer


def _check_classic(member: Member) -> None:
    if not member.is_classic:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
