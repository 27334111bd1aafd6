"""All consumer groups of one shard: heartbeats come in here, and time runs out here.

Guarantees, for whoever routes requests to it: an operation that is refused has changed nothing; what an operation
changes is in its records; a partition is assigned to a member only when no other has it, or has to confirm that it gave
it up. The protocol numbers epochs but not the requests within one, so it is up to the connection that a member's
heartbeats of one epoch arrive in the order it sent them. Late ones of an earlier epoch, and joins that arrive twice, do
no harm: what they say about owned partitions is not believed. What they say about subscriptions is, as in Apache Kafka:
a member that lost an answer says that again, and would not say it a third time.
"""

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.admission import check_size, known_bearer
from quire.coordinators.group.consumer.changes import GroupChanges
from quire.coordinators.group.consumer.classic_members import ClassicMembers
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.describe import described
from quire.coordinators.group.consumer.draft import Draft
from quire.coordinators.group.consumer.heartbeat import Step, answer, take_step
from quire.coordinators.group.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATICALLY_EPOCH,
    Held,
    Member,
    MemberState,
)
from quire.coordinators.group.consumer.migration import can_downgrade, downgraded, upgraded
from quire.coordinators.group.consumer.requests import check_request
from quire.coordinators.group.consumer.sessions import Sessions
from quire.coordinators.group.group import Groups
from quire.coordinators.runtime.machine import Caller, Surroundings
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import Result
from quire.coordinators.runtime.unsent import encoded
from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_describe import DescribedGroup
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from quire.protocol.messages.group_records import ConsumerGroupMemberMetadataKey, ConsumerGroupMetadataKey


class ConsumerGroups:
    def __init__(self, groups: Groups, surroundings: Surroundings) -> None:
        self._groups = groups
        self._surroundings = surroundings
        self._timers = surroundings.timers
        self._changes = GroupChanges(groups, surroundings)
        self._settings = self._changes.settings
        self._sessions = Sessions(surroundings.timers, self._fence)
        self.classic_members = ClassicMembers(
            surroundings, self._changes, self._sessions, self._removal, self._downgrade
        )
        self._untold: dict[tuple[str, str], None] = {}
        """Members that may not know their assignment: it changed with a late request, for whose answer they do not
        wait, or under another coordinator, whose answer may have been lost. They are told with their next heartbeat."""

    # Requests

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[ConsumerGroupHeartbeatResponse]:
        if self._changes_nothing(request, caller, now_ms):
            self._heard(request.group_id, request.member_id, now_ms)
            return Result(
                ConsumerGroupHeartbeatResponse(
                    member_id=request.member_id,
                    member_epoch=request.member_epoch,
                    heartbeat_interval_ms=self._settings.heartbeat_interval_ms(request.group_id),
                )
            )
        check_request(request, caller.api_version, self._settings.assignors)
        if request.member_epoch in (LEAVING_EPOCH, LEAVING_STATICALLY_EPOCH):
            return self._leave(request, now_ms)
        draft = self._open(request.group_id, creates=request.member_epoch == JOINING_EPOCH)
        check_size(draft, request.member_id, request.instance_id, self._settings.most_members)
        member_id = request.member_id or uuids.to_text(self._surroundings.random.uuid())
        step = take_step(draft, request, caller, self._changes, member_id, now_ms)
        self._changes.keep_freshness(draft)
        self._watch_upgraded(draft, now_ms)
        self._watch(request.group_id, step, now_ms)
        tell = self._has_to_be_told(request.group_id, step)
        interval_ms = self._heartbeat_interval_ms(draft.group, now_ms)
        return Result(answer(step.member, interval_ms, tell_assignment=tell), draft.records)

    def _heartbeat_interval_ms(self, group: ConsumerGroup, now_ms: int) -> int:
        """Whoever waits for a target that may not be made yet is to ask again as soon as it may be."""
        waits_ms = self._changes.target_due_in_ms(group, now_ms)
        usual_ms = self._settings.heartbeat_interval_ms(group.group_id)
        return min(usual_ms, waits_ms) or usual_ms

    def describe(self, group: ConsumerGroup) -> DescribedGroup:
        return described(group, self._settings.assignor(group.preferred_assignor()), self._surroundings.image())

    def _changes_nothing(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int) -> bool:
        """The usual heartbeat of a member that has all it should have: it only says that it is there."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup) or request.member_epoch != group.assignment_epoch:
            return False
        member = group.members.get(request.member_id)
        if member is None or group.group_epoch != group.assignment_epoch or request.member_epoch <= 0:
            return False
        said = member.subscription
        return (
            member.current.is_reconciled_to(request.member_epoch)
            and request.subscribed_topic_names is None
            and request.subscribed_topic_regex is None
            and request.server_assignor is None
            and request.rack_id is None
            and request.rebalance_timeout_ms == -1
            and request.instance_id in (None, said.instance_id)
            and said.client_id == caller.client_id
            and said.client_host == caller.client_host
            and said.classic is None
            and (not self._untold or (request.group_id, request.member_id) not in self._untold)
            and self._changes.is_fresh(request.group_id, bool(group.subscribed_regexes), now_ms)
        )

    def _open(self, group_id: str, *, creates: bool) -> Draft:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return Draft(group)
        if not creates:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Consumer group {group_id} not found."
                if group is None
                else f"Group {group_id} is not a consumer group.",
            )
        if group is None:
            return Draft(ConsumerGroup(group_id))
        assert isinstance(group, ClassicGroup), f"{group_id} is of a third kind"
        if group.is_empty:
            return Draft(ConsumerGroup(group_id), group.tombstones())
        return upgraded(group, self._settings, self._surroundings.image())

    def _has_to_be_told(self, group_id: str, step: Step) -> bool:
        key = group_id, step.member.member_id
        was_untold = key in self._untold
        if step.is_late and step.assignment_changed:
            self._untold[key] = None
        elif was_untold and not step.is_late:
            del self._untold[key]
        return step.tell_assignment or was_untold

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Result[ConsumerGroupHeartbeatResponse]:
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            what = "not found" if group is None else "is not a consumer group"
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
        draft = Draft(group)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = known_bearer(draft, request.instance_id, request.member_id)
        response = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
        if request.member_epoch == LEAVING_STATICALLY_EPOCH:
            draft.write(_left_statically(group.group_id, member))
            return Result(response, draft.records)
        return Result(response, self._removal(draft, [member], now_ms))

    # Time

    def _heard(self, group_id: str, member_id: str, now_ms: int) -> None:
        self._sessions.heard(group_id, member_id, self._settings.session_timeout_ms(group_id), now_ms)

    def _watch(self, group_id: str, step: Step, now_ms: int) -> None:
        member = step.member
        self._heard(group_id, member.member_id, now_ms)
        if step.before.is_classic:
            self.classic_members.forget(group_id, member.member_id)
        if member.current != step.before.current or step.before.is_classic:
            if member.current.state == MemberState.UNREVOKED_PARTITIONS:
                self._watch_revocation(group_id, member)
            else:
                self._timers.cancel(("rebalance", group_id, member.member_id))

    def _watch_revocation(self, group_id: str, member: Member) -> None:
        epoch = member.current.member_epoch

        def too_late(now_ms: int) -> Result[None]:
            known = self._known_member(group_id, member.member_id)
            is_revoking = (
                known is not None
                and known.current.state == MemberState.UNREVOKED_PARTITIONS
                and known.current.member_epoch == epoch
            )
            return self._fence(group_id, member.member_id, now_ms) if is_revoking else Result(None)

        timeout_ms = max(0, member.subscription.rebalance_timeout_ms)
        self._timers.schedule(("rebalance", group_id, member.member_id), timeout_ms, too_late)

    def _watch_upgraded(self, draft: Draft, now_ms: int) -> None:
        """Members that a classic group has brought along are expected to be heard from now on."""
        if draft.group.group_id not in self._groups or isinstance(self._groups[draft.group.group_id], ClassicGroup):
            for member in draft.group.members.values():
                if member.is_classic:
                    self.classic_members.watch(draft.group.group_id, member, now_ms)

    def _fence(self, group_id: str, member_id: str, now_ms: int) -> Result[None]:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or member_id not in group.members:
            return Result(None)
        return Result(None, self._removal(Draft(group), [group.members[member_id]], now_ms))

    # Members and groups that go

    def _removal(self, draft: Draft, members: list[Member], now_ms: int) -> list[StateRecord]:
        """What is to be written for these members to be gone."""
        gone = [member.member_id for member in members]
        remaining = [member for id_, member in draft.group.members.items() if id_ not in gone]
        as_classic = self._downgrade(draft, remaining, now_ms, True)
        if as_classic is not None:
            return as_classic
        self._changes.write_removal(draft, gone, now_ms)
        return draft.records

    def _downgrade(
        self, draft: Draft, remaining: list[Member], now_ms: int, rebalances: bool
    ) -> list[StateRecord] | None:
        """What is to be written for the group to be a classic one of those who remain; None where it cannot be."""
        if not can_downgrade(remaining, self._settings):
            return None
        as_classic = downgraded(draft, remaining, self._surroundings.image(), now_ms, rebalances=rebalances)
        # All of a classic group is one record, which may be more than the log takes; here it is one for each member.
        fits = encoded(as_classic, now_ms)[1] <= self._surroundings.max_batch_bytes()
        return as_classic if fits else None

    def _forget(self, group_id: str, member_id: str) -> None:
        """When its end is written, not before: what is too large for the log is refused."""
        self._sessions.forget(group_id, member_id)
        self.classic_members.forget(group_id, member_id)
        self._timers.cancel(("rebalance", group_id, member_id))
        self._untold.pop((group_id, member_id), None)

    def _known_member(self, group_id: str, member_id: str) -> Member | None:
        group = self._groups.get(group_id)
        return group.members.get(member_id) if isinstance(group, ConsumerGroup) else None

    # The shard

    def replay(self, record: StateRecord) -> None:
        group_id: str = record.key.group_id  # type: ignore[attr-defined]
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                self._changes.forget(group_id)
                return
            # A group that only kept offsets, or one of the classic protocol whose end compaction has left out.
            group = self._groups[group_id] = ConsumerGroup(group_id)
        if record.value is None and isinstance(record.key, ConsumerGroupMetadataKey):
            del self._groups[group_id]
            self._changes.forget(group_id)
            return
        if record.value is None and isinstance(record.key, ConsumerGroupMemberMetadataKey):
            self._forget(group_id, record.key.member_id)
        group.apply(record)

    def loaded(self, now_ms: int) -> None:
        """Nobody has been heard yet, but everybody gets a whole session to be heard."""
        for group_id, group in self._groups.items():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self._watch_loaded(group_id, member, now_ms)

    def _watch_loaded(self, group_id: str, member: Member, now_ms: int) -> None:
        if member.is_classic:
            self.classic_members.watch(group_id, member, now_ms)
            return
        self._untold[group_id, member.member_id] = None
        self._heard(group_id, member.member_id, now_ms)
        if member.current.state == MemberState.UNREVOKED_PARTITIONS:
            self._watch_revocation(group_id, member)

    def unloaded(self, reason: ErrorCode) -> None:
        """Nobody waits here: a heartbeat is answered at once."""

    def metadata_changed(self, now_ms: int) -> None:
        self._changes.metadata_changed()


def _left_statically(group_id: str, member: Member) -> StateRecord:
    """Its partitions stay its own until the session ends, whoever bears its name then; it has given up the others."""
    current = member.current
    since_ever: Held = {topic_id: dict.fromkeys(held, 0) for topic_id, held in current.assigned.items()}
    left = current._replace(member_epoch=LEAVING_STATICALLY_EPOCH, assigned=since_ever, revoking={})
    return records.current_assignment(group_id, member.member_id, left)
