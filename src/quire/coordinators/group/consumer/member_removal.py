"""Removes members from a consumer group: they leave, or the coordinator fences them.

If only members of the classic protocol remain, the group becomes a classic one (`migration`).
"""

from quire.coordinators.group.consumer.changes import GroupChanges
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.member import Member
from quire.coordinators.group.consumer.migration import can_downgrade, downgrade_records
from quire.coordinators.group.group import Groups
from quire.coordinators.runtime.machine import MachineEnvironment
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.runtime.unsent import encoded


class MemberRemoval:
    __slots__ = ("_changes", "_environment", "_groups")

    def __init__(self, groups: Groups, environment: MachineEnvironment, changes: GroupChanges) -> None:
        self._groups = groups
        self._environment = environment
        self._changes = changes

    def fence_member(self, group_id: str, member_id: str, now_ms: int) -> CoordinatorResult[None]:
        """The operation of a timer. It does nothing if the member has left meanwhile."""
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or member_id not in group.members:
            return CoordinatorResult(None)
        builder = ConsumerResultBuilder(group)
        self.write_removal(builder, [group.members[member_id]], now_ms)
        return builder.result(None)

    def write_removal(self, builder: ConsumerResultBuilder, members: list[Member], now_ms: int) -> None:
        removed = [member.member_id for member in members]
        remaining = [member for member_id, member in builder.group.members.items() if member_id not in removed]
        if not self.write_downgrade(builder, remaining, now_ms, rebalances=True):
            self._changes.write_removal(builder, removed, now_ms)

    def write_downgrade(
        self, builder: ConsumerResultBuilder, remaining: list[Member], now_ms: int, *, rebalances: bool
    ) -> bool:
        """Makes the group a classic one of the remaining members; False, with nothing written, if that is impossible.

        A classic group is one record, which may be too large for the log. A consumer group has one for each member.
        """
        if not can_downgrade(remaining, self._changes.settings):
            return False
        image = self._environment.image()
        records = downgrade_records(builder.group, remaining, image, now_ms, rebalances=rebalances)
        if encoded([*builder.records, *records], now_ms)[1] > self._environment.max_batch_bytes():
            return False
        builder.write_conversion(*records)
        return True
