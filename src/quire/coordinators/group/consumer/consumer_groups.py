"""The consumer groups of a shard: heartbeats, records and timers.

Guarantees to the caller: a refused operation has changed nothing, the records of an operation are all that it changes,
and a partition is assigned to a member only when no other member owns it or has to confirm its revocation.

The protocol numbers epochs but not the requests within one. So the heartbeats of a member within one epoch must arrive
in the order in which it sent them, which the connection guarantees. Late heartbeats of an earlier epoch and repeated
joins do no harm, because their owned partitions confirm no revocation. Their subscriptions count, as in Apache
Kafka: a member that lost a response repeats its subscription once, and then not again.
"""

from functools import partial

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.changes import GroupChanges
from quire.coordinators.group.consumer.classic_members import ClassicMembers
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.describe import described
from quire.coordinators.group.consumer.heartbeat import HeartbeatStep, heartbeat_response, take_step
from quire.coordinators.group.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATICALLY_EPOCH,
    Held,
    Member,
    MemberState,
)
from quire.coordinators.group.consumer.member_removal import MemberRemoval
from quire.coordinators.group.consumer.membership import check_size, check_static_member
from quire.coordinators.group.consumer.migration import upgraded
from quire.coordinators.group.consumer.requests import check_request
from quire.coordinators.group.consumer.sessions import Sessions
from quire.coordinators.group.group import Groups
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_describe import DescribedGroup
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from quire.protocol.messages.group_records import ConsumerGroupMemberMetadataKey, ConsumerGroupMetadataKey


class ConsumerGroups:
    def __init__(self, groups: Groups, environment: MachineEnvironment) -> None:
        self._groups = groups
        self._environment = environment
        self._timers = environment.timers
        self._changes = GroupChanges(groups, environment)
        self._settings = self._changes.settings
        self._removal = MemberRemoval(groups, environment, self._changes)
        self._sessions = Sessions(environment.timers, self._removal)
        self.classic_members = ClassicMembers(environment, self._changes, self._sessions, self._removal)
        self._unsent_assignments: dict[tuple[str, str], None] = {}
        """Members that may not know their assignment: it changed with a late request, whose response they ignore, or
        under another coordinator, whose response may have been lost. The response to their next heartbeat has it."""

    # --- Requests

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        if self._changes_nothing(request, caller, now_ms):
            self._renew_session(request.group_id, request.member_id, now_ms)
            return CoordinatorResult(
                ConsumerGroupHeartbeatResponse(
                    member_id=request.member_id,
                    member_epoch=request.member_epoch,
                    heartbeat_interval_ms=self._settings.heartbeat_interval_ms(request.group_id),
                )
            )
        check_request(request, caller.api_version, self._settings.assignors)
        if request.member_epoch in (LEAVING_EPOCH, LEAVING_STATICALLY_EPOCH):
            return self._leave(request, now_ms)
        builder = self._open(request.group_id, creates=request.member_epoch == JOINING_EPOCH)
        check_size(builder.group, request.member_id, request.instance_id, self._settings.most_members)
        member_id = request.member_id or uuids.to_text(self._environment.random.uuid())
        step = take_step(builder, request, caller, self._changes, member_id, now_ms)
        self._changes.keep_freshness(builder)
        self._watch_upgraded(builder, now_ms)
        self._watch(request.group_id, step, now_ms)
        with_assignment = self._must_send_assignment(request.group_id, step)
        interval_ms = self._heartbeat_interval_ms(builder.group, now_ms)
        return builder.result(heartbeat_response(step.member, interval_ms, with_assignment=with_assignment))

    def _heartbeat_interval_ms(self, group: ConsumerGroup, now_ms: int) -> int:
        """A member that waits for a target sends its next heartbeat as soon as the target may be made."""
        waits_ms = self._changes.target_due_in_ms(group, now_ms)
        usual_ms = self._settings.heartbeat_interval_ms(group.group_id)
        return min(usual_ms, waits_ms) or usual_ms

    def describe(self, group: ConsumerGroup) -> DescribedGroup:
        return described(group, self._settings.assignor(group.preferred_assignor()), self._environment.image())

    def _changes_nothing(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int) -> bool:
        """The usual heartbeat of a reconciled member: it only renews the session."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup) or request.member_epoch != group.assignment_epoch:
            return False
        member = group.members.get(request.member_id)
        if member is None or group.group_epoch != group.assignment_epoch or request.member_epoch <= 0:
            return False
        subscription = member.subscription
        return (
            member.current.is_reconciled_to(request.member_epoch)
            and request.subscribed_topic_names is None
            and request.subscribed_topic_regex is None
            and request.server_assignor is None
            and request.rack_id is None
            and request.rebalance_timeout_ms == -1
            and request.instance_id in (None, subscription.instance_id)
            and subscription.client_id == caller.client_id
            and subscription.client_host == caller.client_host
            and subscription.classic is None
            and (not self._unsent_assignments or (request.group_id, request.member_id) not in self._unsent_assignments)
            and self._changes.is_fresh(request.group_id, bool(group.subscribed_regexes), now_ms)
        )

    def _open(self, group_id: str, *, creates: bool) -> ConsumerResultBuilder:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return ConsumerResultBuilder(group)
        if not creates:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Consumer group {group_id} not found."
                if group is None
                else f"Group {group_id} is not a consumer group.",
            )
        if group is None:
            return ConsumerResultBuilder(ConsumerGroup(group_id))
        assert isinstance(group, ClassicGroup), f"{group_id} is of a third kind"
        if group.is_empty:
            builder = ConsumerResultBuilder(ConsumerGroup(group_id))
            builder.write_conversion(*group.tombstones())
            return builder
        return upgraded(group, self._settings, self._environment.image())

    def _must_send_assignment(self, group_id: str, step: HeartbeatStep) -> bool:
        key = group_id, step.member.member_id
        was_unsent = key in self._unsent_assignments
        if step.is_late and step.assignment_changed:
            self._unsent_assignments[key] = None
        elif was_unsent and not step.is_late:
            del self._unsent_assignments[key]
        return step.with_assignment or was_unsent

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            what = "not found" if group is None else "is not a consumer group"
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
        builder = ConsumerResultBuilder(group)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = check_static_member(group, request.instance_id, request.member_id)
        response = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
        if request.member_epoch == LEAVING_STATICALLY_EPOCH:
            builder.write(_left_statically(group.group_id, member))
        else:
            self._removal.write_removal(builder, [member], now_ms)
        return builder.result(response)

    # --- Timers

    def _renew_session(self, group_id: str, member_id: str, now_ms: int) -> None:
        self._sessions.renew_session(group_id, member_id, self._settings.session_timeout_ms(group_id), now_ms)

    def _watch(self, group_id: str, step: HeartbeatStep, now_ms: int) -> None:
        member = step.member
        self._renew_session(group_id, member.member_id, now_ms)
        if step.before.is_classic:
            self.classic_members.forget(group_id, member.member_id)
        if member.current != step.before.current or step.before.is_classic:
            if member.current.state == MemberState.UNREVOKED_PARTITIONS:
                self._watch_revocation(group_id, member)
            else:
                self._timers.cancel(("rebalance", group_id, member.member_id))

    def _watch_revocation(self, group_id: str, member: Member) -> None:
        expire = partial(self._fence_unrevoked, group_id, member.member_id, member.current.member_epoch)
        timeout_ms = max(0, member.subscription.rebalance_timeout_ms)
        self._timers.schedule(("rebalance", group_id, member.member_id), timeout_ms, expire)

    def _fence_unrevoked(self, group_id: str, member_id: str, epoch: int, now_ms: int) -> CoordinatorResult[None]:
        """Fences a member that has not revoked its partitions within its rebalance timeout."""
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        is_revoking = (
            member is not None
            and member.current.state == MemberState.UNREVOKED_PARTITIONS
            and member.current.member_epoch == epoch
        )
        return self._removal.fence_member(group_id, member_id, now_ms) if is_revoking else CoordinatorResult(None)

    def _watch_upgraded(self, builder: ConsumerResultBuilder, now_ms: int) -> None:
        """Starts the sessions of the members that the upgraded classic group had."""
        if builder.group.group_id not in self._groups or isinstance(self._groups[builder.group.group_id], ClassicGroup):
            for member in builder.group.members.values():
                if member.is_classic:
                    self.classic_members.renew_session(builder.group.group_id, member, now_ms)

    def _forget(self, group_id: str, member_id: str) -> None:
        """Called when the tombstone is replayed. Not before, because the log may refuse it."""
        self._sessions.forget(group_id, member_id)
        self.classic_members.forget(group_id, member_id)
        self._timers.cancel(("rebalance", group_id, member_id))
        self._unsent_assignments.pop((group_id, member_id), None)

    # --- State machine

    def replay(self, record: StateRecord) -> None:
        group_id: str = record.key.group_id  # type: ignore[attr-defined]
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                self._changes.forget(group_id)
                return
            # The group only kept offsets, or was a classic one whose tombstone compaction has removed.
            group = self._groups[group_id] = ConsumerGroup(group_id)
        if record.value is None and isinstance(record.key, ConsumerGroupMetadataKey):
            del self._groups[group_id]
            self._changes.forget(group_id)
            return
        if record.value is None and isinstance(record.key, ConsumerGroupMemberMetadataKey):
            self._forget(group_id, record.key.member_id)
        group.apply(record)

    def loaded(self, now_ms: int) -> None:
        """Every member gets a full session timeout for its first heartbeat."""
        for group_id, group in self._groups.items():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self._watch_loaded(group_id, member, now_ms)

    def _watch_loaded(self, group_id: str, member: Member, now_ms: int) -> None:
        if member.is_classic:
            self.classic_members.renew_session(group_id, member, now_ms)
            return
        self._unsent_assignments[group_id, member.member_id] = None
        self._renew_session(group_id, member.member_id, now_ms)
        if member.current.state == MemberState.UNREVOKED_PARTITIONS:
            self._watch_revocation(group_id, member)

    def unloaded(self, reason: ErrorCode) -> None:
        """No request waits: heartbeats are answered at once."""

    def metadata_changed(self, now_ms: int) -> None:
        self._changes.metadata_changed()


def _left_statically(group_id: str, member: Member) -> StateRecord:
    """A static member that left keeps its assignment for its next incarnation, until the session expires."""
    current = member.current
    assigned: Held = {topic_id: dict.fromkeys(held, 0) for topic_id, held in current.assigned.items()}
    left = current._replace(member_epoch=LEAVING_STATICALLY_EPOCH, assigned=assigned, revoking={})
    return records.current_assignment(group_id, member.member_id, left)
