"""Members of a consumer group that use the classic protocol, during a migration.

To these members the group looks like a classic one that another member leads. JoinGroup is answered at once; the
generation is the member epoch. SyncGroup returns what the coordinator assigned. A heartbeat tells the member to join
again if there is a newer target assignment or one is due, if the member has partitions to revoke, or if partitions that
it waits for are free. The owned partitions in JoinGroup have the meaning that they have in a ConsumerGroupHeartbeat. A
member that does not join or sync in time is fenced.
"""

from functools import partial

from quire.coordinators.group.classic.member_id import new_member_id
from quire.coordinators.group.consumer import embedded_protocol
from quire.coordinators.group.consumer.changes import GroupChanges
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.member import JOINING_EPOCH, Member, MemberState, Subscription
from quire.coordinators.group.consumer.member_removal import MemberRemoval
from quire.coordinators.group.consumer.membership import check_size, check_static_member, replace_static_member
from quire.coordinators.group.consumer.migration import classic_assignment, classic_metadata, told_protocol
from quire.coordinators.group.consumer.sessions import Sessions
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

MEMBER_ID_REQUIRED_VERSION = 4
BATCHED_LEAVE_VERSION = 3


class ClassicMembers:
    __slots__ = (
        "_changes",
        "_image",
        "_joining",
        "_random",
        "_removal",
        "_sessions",
        "_settings",
        "_timers",
    )

    def __init__(
        self,
        environment: MachineEnvironment,
        changes: GroupChanges,
        sessions: Sessions,
        removal: MemberRemoval,
    ) -> None:
        self._random = environment.random
        self._timers = environment.timers
        self._image = environment.image
        self._changes = changes
        self._settings = changes.settings
        self._sessions = sessions
        self._removal = removal
        self._joining: dict[tuple[str, str], None] = {}
        """Members that must join again. Their timers run."""

    # --- Requests

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[JoinGroupResponse]:
        self._check_join(group, request)
        subscription = _read_subscription(request)
        is_static = request.group_instance_id is not None
        if not request.member_id and not is_static and caller.api_version >= MEMBER_ID_REQUIRED_VERSION:
            new_id = new_member_id(caller.client_id, self._random)
            return CoordinatorResult(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=new_id))
        builder = ConsumerResultBuilder(group)
        existing = None if request.group_instance_id is None else group.static_member(request.group_instance_id)
        before = self._get_or_create_member(builder, request, caller)
        said = _subscription(before.subscription, request, caller, subscription)
        changed = self._changes.write_member(builder, before, said, now_ms)
        if existing is not None and existing.member_id != before.member_id:
            remaining = list(builder.group.members.values())
            rebalances = not builder.group.is_settled
            if self._removal.write_downgrade(builder, remaining, now_ms, rebalances=rebalances):
                # The last member of the consumer protocol was replaced by one of the classic protocol.
                rejoin = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=request.member_id)
                return builder.result(rejoin)
        self._changes.write_target(builder, now_ms)
        # As with heartbeats: a request from before the current epoch cannot confirm a revocation.
        is_late = subscription.generation_id not in (embedded_protocol.NO_GENERATION, before.current.member_epoch)
        is_late = is_late and before.current.member_epoch > JOINING_EPOCH
        owned = None if is_late else embedded_protocol.owned_by(subscription, self._image())
        member = self._changes.write_reconciled(builder, before.member_id, owned, subscription_changed=changed)
        self._changes.keep_freshness(builder)
        self._joined(group.group_id, member, now_ms)
        return builder.result(_joined_response(member))

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[SyncGroupResponse]:
        member = self._check_member(group, request.member_id, request.group_instance_id, request.generation_id)
        classic, protocol = member.subscription.classic, told_protocol(member)
        assert classic is not None
        if request.protocol_type not in (None, embedded_protocol.PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            protocol,
        ):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the protocol of this member is {protocol}")
        if self._is_behind(group, member, now_ms) and member.current.state != MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group.group_id, member)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group has a newer assignment: join again")
        self._timers.cancel(("sync", group.group_id, member.member_id))
        self.renew_session(group.group_id, member, now_ms)
        return CoordinatorResult(
            SyncGroupResponse(
                protocol_type=embedded_protocol.PROTOCOL_TYPE,
                protocol_name=protocol,
                assignment=classic_assignment(classic, member.current.assigned, self._image()),
            )
        )

    def heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[HeartbeatResponse]:
        member = self._check_member(group, request.member_id, request.group_instance_id, request.generation_id)
        self.renew_session(group.group_id, member, now_ms)
        builder = ConsumerResultBuilder(group)
        self._changes.write_topics(builder, now_ms)
        self._changes.keep_freshness(builder)
        if self._is_behind(builder.group, member, now_ms) or self._can_progress(group, member):
            self._expect_join(group.group_id, member)
            return builder.result(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return builder.result(HeartbeatResponse())

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[LeaveGroupResponse]:
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
        builder = ConsumerResultBuilder(group)
        if leaving:
            self._removal.write_removal(builder, list(leaving.values()), now_ms)
        if not is_batched:
            return builder.result(LeaveGroupResponse(error_code=errors[0]))
        left = [
            MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error)
            for each, error in zip(identities, errors, strict=True)
        ]
        return builder.result(LeaveGroupResponse(members=left))

    # --- Timers

    def renew_session(self, group_id: str, member: Member, now_ms: int) -> None:
        """Starts the session if there is none."""
        assert member.subscription.classic is not None
        self._sessions.renew_session(group_id, member.member_id, member.subscription.classic.session_timeout_ms, now_ms)

    def forget(self, group_id: str, member_id: str) -> None:
        self._joining.pop((group_id, member_id), None)
        self._timers.cancel(("join", group_id, member_id))
        self._timers.cancel(("sync", group_id, member_id))

    def _joined(self, group_id: str, member: Member, now_ms: int) -> None:
        self.forget(group_id, member.member_id)
        self.renew_session(group_id, member, now_ms)
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
            partial(self._removal.fence_member, group_id, member.member_id),
        )

    # --- Checks

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> None:
        shortest_ms, longest_ms = self._settings.classic_session_timeouts_ms
        if not shortest_ms <= request.session_timeout_ms <= longest_ms:
            raise ApiError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"session.timeout.ms={request.session_timeout_ms} is not allowed: "
                f"choose from {shortest_ms} to {longest_ms}",
            )
        check_size(group, request.member_id, request.group_instance_id, self._settings.most_members)
        others = [each for each in group.members.values() if each.is_classic and each.member_id != request.member_id]
        offered = {protocol.name for protocol in request.protocols}
        for other in others:
            assert other.subscription.classic is not None
            offered &= {protocol.name for protocol in other.subscription.classic.supported_protocols}
        if request.protocol_type != embedded_protocol.PROTOCOL_TYPE or not offered:
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"the other members of group {group.group_id} do not support these protocols: use one of theirs",
            )

    def _get_or_create_member(
        self, builder: ConsumerResultBuilder, request: JoinGroupRequest, caller: Caller
    ) -> Member:
        instance_id = request.group_instance_id
        known_as = caller.client_id if instance_id is None else instance_id
        member_id = request.member_id or new_member_id(known_as, self._random)
        if instance_id is None:
            return builder.group.members.get(member_id) or Member(member_id)
        if request.member_id:
            return check_static_member(builder.group, instance_id, member_id)
        existing = builder.group.static_member(instance_id)
        return Member(member_id) if existing is None else replace_static_member(builder, existing, member_id)

    def _check_member(self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> Member:
        member = group.member(member_id) if instance_id is None else check_static_member(group, instance_id, member_id)
        _check_classic(member)
        if member.current.member_epoch != generation:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION,
                f"member {member_id} is in generation {member.current.member_epoch}, not {generation}: join again",
            )
        return member

    def _is_behind(self, group: ConsumerGroup, member: Member, now_ms: int) -> bool:
        """Whether there is a newer target, or would be if the member joined: in a group without members of the consumer
        protocol, only a joining member makes one."""
        return member.current.member_epoch < group.assignment_epoch or self._changes.is_target_due(group, now_ms)

    def _can_progress(self, group: ConsumerGroup, member: Member) -> bool:
        """Whether the member should join again: it has partitions to revoke, or those it waits for are free."""
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


def _subscription(
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
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the subscription is not one of the consumer protocol"
        ) from None


def _joined_response(member: Member) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=member.current.member_epoch,
        protocol_type=embedded_protocol.PROTOCOL_TYPE,
        protocol_name=told_protocol(member),
        member_id=member.member_id,
    )


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    """An administrator removes a static member by its group.instance.id, without the member id, of either protocol."""
    if identity.group_instance_id is None:
        member = group.member(identity.member_id)
        _check_classic(member)
        return member
    if identity.member_id:
        member = check_static_member(group, identity.group_instance_id, identity.member_id)
        _check_classic(member)
        return member
    existing = group.static_member(identity.group_instance_id)
    if existing is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {identity.group_instance_id} is unknown.")
    return existing


def _check_classic(member: Member) -> None:
    if not member.is_classic:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
