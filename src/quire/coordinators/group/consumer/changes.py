"""What a change means to a group: the group epoch goes up, and there is a new target assignment.

Used by whatever changes a group: a heartbeat, a member that leaves or is fenced, a member of the classic protocol.
"""

from collections.abc import Iterable, Mapping

from quire.coordinators.group.consumer import records, target
from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.assignors.turns import Turns, finish
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.draft import Draft
from quire.coordinators.group.consumer.freshness import Freshness
from quire.coordinators.group.consumer.member import Member, Subscription
from quire.coordinators.group.consumer.metadata_hash import TopicHashes
from quire.coordinators.group.consumer.reconciliation import Goal, Owned, reconcile
from quire.coordinators.group.consumer.regex_subscriptions import RegexSubscriptions
from quire.coordinators.group.consumer.settings import ConsumerSettings
from quire.coordinators.group.consumer.target_runs import ASK_AGAIN_MS, TargetRuns
from quire.coordinators.group.group import Groups
from quire.coordinators.runtime.machine import Surroundings

FIRST_EPOCH = 2
"""Of a group that has members. Apache Kafka keeps epoch 1 for a group whose first target is still to come."""


class GroupChanges:
    __slots__ = ("_freshness", "_hashes", "_image", "_regexes", "_runs", "_version", "settings")

    def __init__(self, groups: Groups, surroundings: Surroundings) -> None:
        self.settings = ConsumerSettings(surroundings.config, surroundings.image)
        self._version = 0
        """Counts the changes of the metadata."""
        self._freshness: dict[str, Freshness] = {}
        self._image = surroundings.image
        self._hashes = TopicHashes()
        self._regexes = RegexSubscriptions()
        self._runs = TargetRuns(groups, surroundings.timers, self._compute_target, self._is_target_due)

    def metadata_changed(self) -> None:
        self._version += 1
        self._hashes.forget()

    def write_member(self, draft: Draft, member: Member, subscription: Subscription, now_ms: int) -> bool:
        """The member, known or new, says this about itself. Whether it now subscribes to something else."""
        was_preferred = draft.group.preferred_assignor()
        before = member.subscription
        if member.member_id not in draft.group.members or subscription != before:
            draft.write(records.member_metadata(draft.group.group_id, member.member_id, subscription))
        regex_changed = before.topic_regex != subscription.topic_regex
        if regex_changed:
            self._regexes.write_changed(draft, before.topic_regex, subscription.topic_regex, self._image(), now_ms)
        changed = regex_changed or before.topic_names != subscription.topic_names
        is_other_assignor = self.settings.assignor(was_preferred) != self.settings.assignor(
            draft.group.preferred_assignor()
        )
        self._write_epoch(draft, changed or is_other_assignor, now_ms)
        return changed

    def write_removal(self, draft: Draft, member_ids: Iterable[str], now_ms: int) -> None:
        """Members are gone, and nobody is left who subscribes to what only they did.

        When all are, the target of nobody is made, for its time: the group's offsets are unused from then on.
        """
        group_id = draft.group.group_id
        for member_id in member_ids:
            draft.write(*records.member_tombstones(group_id, member_id))
        for regex in sorted(draft.group.resolved.keys() - draft.group.subscribed_regexes.keys()):
            draft.write(records.regular_expression_tombstone(group_id, regex))
        self._write_next_epoch(draft, self._metadata_hash(draft))
        if not draft.group.members:
            draft.write(records.target_metadata(group_id, draft.group.group_epoch, now_ms))

    def write_topics(self, draft: Draft, now_ms: int) -> None:
        """What has become of the topics since the group last looked at them."""
        if not self.is_fresh(draft.group.group_id, bool(draft.group.subscribed_regexes), now_ms):
            self._write_epoch(draft, False, now_ms)

    def is_target_due(self, group: ConsumerGroup, now_ms: int) -> bool:
        """Whether the next member that joins or heartbeats makes a new one."""
        return not self._runs.is_running(group.group_id) and self._is_target_due(group, now_ms)

    def target_due_in_ms(self, group: ConsumerGroup, now_ms: int) -> int:
        """How long the group still waits for a target that it needs; 0 where it does not wait."""
        if self._runs.is_running(group.group_id):
            return ASK_AGAIN_MS
        return target.due_in_ms(group, self.settings.assignment_interval_ms(group.group_id), now_ms)

    def write_target(self, draft: Draft, now_ms: int) -> None:
        """If it is time for one. A large one is made in turns, and written later."""
        if not self.is_target_due(draft.group, now_ms):
            return
        if not target.is_large(draft.group, self._image()):
            target.write_target(draft, finish(self._compute_target(draft.group)), now_ms)
            return
        self._runs.start(draft.group.group_id)
        if draft.group.assignment_epoch == 0:
            # A member in epoch 0 has not joined: those who wait for the first target are in the epoch before it.
            draft.write(records.target_metadata(draft.group.group_id, FIRST_EPOCH - 1, 0))

    def _is_target_due(self, group: ConsumerGroup, now_ms: int) -> bool:
        interval_ms = self.settings.assignment_interval_ms(group.group_id)
        return target.is_due(group, interval_ms, now_ms) and not self._runs.is_too_large(group)

    def _compute_target(self, group: ConsumerGroup) -> Turns[Mapping[str, Assignment]]:
        return target.compute_target(group, self.settings.assignor(group.preferred_assignor()), self._image)

    def write_reconciled(
        self, draft: Draft, member_id: str, owned: Owned | None, *, subscription_changed: bool
    ) -> Member:
        """The member after its next step towards the target."""
        group = draft.group
        member = group.members[member_id]
        if not subscription_changed and member.current.is_reconciled_to(group.assignment_epoch):
            return member
        goal = Goal(
            epoch=group.assignment_epoch,
            target=group.targets.get(member_id, {}),
            subscribed=target.subscribed_ids(group, member.subscription, self._image()),
            is_free=group.is_free_for(member_id),
            subscription_changed=subscription_changed,
        )
        current = reconcile(member.current, goal, owned)
        if current != member.current:
            draft.write(records.current_assignment(group.group_id, member_id, current))
        return draft.group.members[member_id]

    def is_fresh(self, group_id: str, has_regexes: bool, now_ms: int) -> bool:
        """Whether nothing about topics needs to be looked at for this group."""
        known = self._freshness.get(group_id)
        return (
            known is not None
            and known.topics_version == self._version
            and not (has_regexes and self._regexes_are_stale(known, now_ms))
        )

    def keep_freshness(self, draft: Draft) -> None:
        """The operation is not refused."""
        if draft.freshness is not None:
            self._freshness[draft.group.group_id] = draft.freshness

    def forget(self, group_id: str) -> None:
        self._freshness.pop(group_id, None)
        self._runs.forget(group_id)

    def _write_epoch(self, draft: Draft, changed: bool, now_ms: int) -> None:
        known = self._freshness.get(draft.group.group_id, Freshness())
        if draft.group.subscribed_regexes and self._regexes_are_stale(known, now_ms):
            before = dict(draft.group.resolved)
            self._regexes.write_refreshed(draft, self._image(), now_ms)
            changed |= draft.group.resolved != before
            known = known._replace(regexes_version=self._version, regexes_looked_at_ms=now_ms)
        changed |= draft.group.group_epoch == 0
        if changed or known.topics_version != self._version:
            metadata_hash = self._metadata_hash(draft)
            if changed or metadata_hash != draft.group.metadata_hash:
                self._write_next_epoch(draft, metadata_hash)
            if draft.group.has_partition_metadata:
                draft.write(records.partition_metadata_tombstone(draft.group.group_id))
        draft.freshness = known._replace(topics_version=self._version)

    def _write_next_epoch(self, draft: Draft, metadata_hash: int) -> None:
        epoch = max(draft.group.group_epoch + 1, FIRST_EPOCH)
        draft.write(records.group_metadata(draft.group.group_id, epoch, metadata_hash))

    def _metadata_hash(self, draft: Draft) -> int:
        return self._hashes.of_group(draft.group.subscribed_topics(), self._image())

    def _regexes_are_stale(self, known: Freshness, now_ms: int) -> bool:
        return known.regexes_are_stale(self._version, self.settings.regex_refresh_interval_ms, now_ms)
