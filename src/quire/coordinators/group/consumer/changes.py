"""Writes the consequences of a change to a group: a new group epoch, a new target, the member's next assignment.

Heartbeats, leaving and fenced members, and members of the classic protocol use it.
"""

from collections.abc import Iterable, Mapping

from quire.coordinators.group.consumer import records, target
from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.assignors.turns import Turns, finish
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.freshness import Freshness
from quire.coordinators.group.consumer.member import CurrentAssignment, Member, Subscription
from quire.coordinators.group.consumer.metadata_hash import TopicHashes
from quire.coordinators.group.consumer.reconciliation import Goal, Owned, reconcile, repeat
from quire.coordinators.group.consumer.regex_subscriptions import RegexSubscriptions
from quire.coordinators.group.consumer.settings import ConsumerSettings
from quire.coordinators.group.consumer.target_runs import ASK_AGAIN_MS, TargetRuns
from quire.coordinators.group.group import Groups
from quire.coordinators.runtime.machine import MachineEnvironment

FIRST_EPOCH = 2
"""The first group epoch with members. Epoch 1 means that the first target is not computed yet, as in Kafka."""


class GroupChanges:
    __slots__ = ("_freshness", "_hashes", "_image", "_regexes", "_runs", "_version", "settings")

    def __init__(self, groups: Groups, environment: MachineEnvironment) -> None:
        self.settings = ConsumerSettings(environment.config, environment.image)
        self._version = 0
        """The number of metadata changes so far."""
        self._freshness: dict[str, Freshness] = {}
        self._image = environment.image
        self._hashes = TopicHashes()
        self._regexes = RegexSubscriptions()
        self._runs = TargetRuns(groups, environment.timers, self._compute_target, self._is_target_due)

    def metadata_changed(self) -> None:
        self._version += 1
        self._hashes.forget()

    def write_member(
        self, builder: ConsumerResultBuilder, member: Member, subscription: Subscription, now_ms: int
    ) -> bool:
        """Writes the subscription of a new or known member. Returns whether its topics have changed."""
        was_preferred = builder.group.preferred_assignor()
        before = member.subscription
        if member.member_id not in builder.group.members or subscription != before:
            builder.write(records.member_metadata(builder.group.group_id, member.member_id, subscription))
        regex_changed = before.topic_regex != subscription.topic_regex
        if regex_changed:
            self._regexes.write_changed(builder, before.topic_regex, subscription.topic_regex, self._image(), now_ms)
        changed = regex_changed or before.topic_names != subscription.topic_names
        is_other_assignor = self.settings.assignor(was_preferred) != self.settings.assignor(
            builder.group.preferred_assignor()
        )
        self._write_epoch(builder, changed or is_other_assignor, now_ms)
        return changed

    def write_removal(self, builder: ConsumerResultBuilder, member_ids: Iterable[str], now_ms: int) -> None:
        """Removes members, and the regular expressions that only they used.

        If no member is left, it writes an empty target for its timestamp: the retention of the offsets starts then.
        """
        group_id = builder.group.group_id
        for member_id in member_ids:
            builder.write(*records.member_tombstones(group_id, member_id))
        for regex in sorted(builder.group.resolved.keys() - builder.group.subscribed_regexes.keys()):
            builder.write(records.regular_expression_tombstone(group_id, regex))
        self._write_next_epoch(builder, self._metadata_hash(builder))
        if not builder.group.members:
            builder.write(records.target_metadata(group_id, builder.group.group_epoch, now_ms))

    def write_topics(self, builder: ConsumerResultBuilder, now_ms: int) -> None:
        """Starts a new group epoch if the topics have changed since the last check."""
        if not self.is_fresh(builder.group.group_id, bool(builder.group.subscribed_regexes), now_ms):
            self._write_epoch(builder, False, now_ms)

    def is_target_due(self, group: ConsumerGroup, now_ms: int) -> bool:
        """Whether the next join or heartbeat computes a new target."""
        return not self._runs.is_running(group.group_id) and self._is_target_due(group, now_ms)

    def target_due_in_ms(self, group: ConsumerGroup, now_ms: int) -> int:
        """How long the group must wait for a target that it needs; 0 if it does not wait."""
        if self._runs.is_running(group.group_id):
            return ASK_AGAIN_MS
        return target.due_in_ms(group, self.settings.assignment_interval_ms(group.group_id), now_ms)

    def write_target(self, builder: ConsumerResultBuilder, now_ms: int) -> None:
        """Computes and writes a target if one is due. A large one is computed in turns, and written later."""
        if not self.is_target_due(builder.group, now_ms):
            return
        if not target.is_large(builder.group, self._image()):
            target.write_target(builder, finish(self._compute_target(builder.group)), now_ms)
            return
        self._runs.start(builder.group.group_id)
        if builder.group.assignment_epoch == 0:
            # Epoch 0 means that a member has not joined. Members that wait for the first target are in epoch 1.
            builder.write(records.target_metadata(builder.group.group_id, FIRST_EPOCH - 1, 0))

    def _is_target_due(self, group: ConsumerGroup, now_ms: int) -> bool:
        interval_ms = self.settings.assignment_interval_ms(group.group_id)
        return target.is_due(group, interval_ms, now_ms) and not self._runs.is_too_large(group)

    def _compute_target(self, group: ConsumerGroup) -> Turns[Mapping[str, Assignment]]:
        return target.compute_target(group, self.settings.assignor(group.preferred_assignor()), self._image)

    def write_reconciled(
        self, builder: ConsumerResultBuilder, member_id: str, owned: Owned | None, *, subscription_changed: bool
    ) -> Member:
        """Writes the next step of the member towards its target, and returns the member."""
        group = builder.group
        member = group.members[member_id]
        if not subscription_changed and member.current.is_reconciled_to(group.assignment_epoch):
            return member
        goal = self._goal(group, member, subscription_changed=subscription_changed)
        return _write_current(builder, member, reconcile(member.current, goal, owned))

    def write_repeated(
        self, builder: ConsumerResultBuilder, member_id: str, owned: Owned | None, *, subscription_changed: bool
    ) -> Member:
        """Writes what changes for a member whose request is late, and returns the member."""
        member = builder.group.members[member_id]
        if not subscription_changed:
            return member
        goal = self._goal(builder.group, member, subscription_changed=True)
        return _write_current(builder, member, repeat(member.current, goal, owned))

    def _goal(self, group: ConsumerGroup, member: Member, *, subscription_changed: bool) -> Goal:
        return Goal(
            epoch=group.assignment_epoch,
            target=group.targets.get(member.member_id, {}),
            subscribed=target.subscribed_ids(group, member.subscription, self._image()),
            is_free=group.is_free_for(member.member_id),
            subscription_changed=subscription_changed,
        )

    def is_fresh(self, group_id: str, has_regexes: bool, now_ms: int) -> bool:
        """Whether the group has seen all changes of its topics."""
        known = self._freshness.get(group_id)
        return (
            known is not None
            and known.topics_version == self._version
            and not (has_regexes and self._regexes_are_stale(known, now_ms))
        )

    def keep_freshness(self, builder: ConsumerResultBuilder) -> None:
        """Called when the operation has succeeded."""
        if builder.freshness is not None:
            self._freshness[builder.group.group_id] = builder.freshness

    def forget(self, group_id: str) -> None:
        self._freshness.pop(group_id, None)
        self._runs.forget(group_id)

    def _write_epoch(self, builder: ConsumerResultBuilder, changed: bool, now_ms: int) -> None:
        known = self._freshness.get(builder.group.group_id, Freshness())
        if builder.group.subscribed_regexes and self._regexes_are_stale(known, now_ms):
            before = dict(builder.group.resolved)
            self._regexes.write_refreshed(builder, self._image(), now_ms)
            changed |= builder.group.resolved != before
            known = known._replace(regexes_version=self._version, regexes_looked_at_ms=now_ms)
        changed |= builder.group.group_epoch == 0
        if changed or known.topics_version != self._version:
            metadata_hash = self._metadata_hash(builder)
            if changed or metadata_hash != builder.group.metadata_hash:
                self._write_next_epoch(builder, metadata_hash)
            if builder.group.has_partition_metadata:
                builder.write(records.partition_metadata_tombstone(builder.group.group_id))
        builder.freshness = known._replace(topics_version=self._version)

    def _write_next_epoch(self, builder: ConsumerResultBuilder, metadata_hash: int) -> None:
        epoch = max(builder.group.group_epoch + 1, FIRST_EPOCH)
        builder.write(records.group_metadata(builder.group.group_id, epoch, metadata_hash))

    def _metadata_hash(self, builder: ConsumerResultBuilder) -> int:
        return self._hashes.of_group(builder.group.subscribed_topics(), self._image())

    def _regexes_are_stale(self, known: Freshness, now_ms: int) -> bool:
        return known.regexes_are_stale(self._version, self.settings.regex_refresh_interval_ms, now_ms)


def _write_current(builder: ConsumerResultBuilder, member: Member, current: CurrentAssignment) -> Member:
    if current != member.current:
        builder.write(records.current_assignment(builder.group.group_id, member.member_id, current))
    return builder.group.members[member.member_id]
