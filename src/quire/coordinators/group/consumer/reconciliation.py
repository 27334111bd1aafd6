"""Reconciliation: moves a member towards its target, one step per heartbeat, without two owners of a partition.

The next step depends on the state of the member:

    state                   condition                                       next step
    STABLE                  the target has another epoch                    towards the target
                            it no longer subscribes to what it has          it must revoke that
    UNREVOKED_PARTITIONS    it confirms the revocation                      towards the target
                            it no longer subscribes to more of it           it must revoke that too
    UNRELEASED_PARTITIONS   always                                          towards the target, with what is free
    UNKNOWN                 it owns nothing                                 towards the target
                            otherwise                                       FENCED_MEMBER_EPOCH

A late request, from before the member knew its epoch, only revokes what the member no longer subscribes to (`repeat`).

"Towards the target" means: while the member has partitions that are not in its target, it stays in its epoch as
UNREVOKED_PARTITIONS. After that it is in the epoch of the target and gets the partitions that no other member owns. It
is STABLE if these are all, and UNRELEASED_PARTITIONS otherwise.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.member import CurrentAssignment, Held, MemberState
from quire.protocol.errors import ApiError, ErrorCode

Owned = Sequence[tuple[bytes, Sequence[int]]]
"""The partitions that the member reports, by topic id."""


class Goal(NamedTuple):
    """The target of a member, and what it needs to get there."""

    epoch: int
    target: Assignment
    subscribed: frozenset[bytes]
    is_free: Callable[[bytes, int], bool]
    """Whether no other member owns the partition."""
    subscription_changed: bool = False


def reconcile(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
    """The next assignment of the member, which may be the current one.

    `owned` is None if the member did not report its partitions, or reported them before it got its last response.
    """
    return _STEPS[current.state](current, goal, owned)


def repeat(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
    """What a member gets whose request is late: its assignment once more, within its new subscription.

    The member takes no other step. What it reports is from before the current assignment, so it does not show that a
    partition is revoked. And a member reports only when its assignment changes: if it would get just what it reported,
    it would never confirm the revocation of partitions that it was not told of. Then it gets these once more too.
    """
    within = _within_subscription(current, goal, None)
    reported = {(topic_id, number) for topic_id, numbers in owned or () for number in numbers}
    if {(topic_id, number) for topic_id, held in within.assigned.items() for number in held} == reported:
        return current
    # A late request does not show that the member knows its epoch, so it may still repeat the previous one.
    return within._replace(previous_member_epoch=current.previous_member_epoch)


def _from_stable(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
    if current.member_epoch != goal.epoch:
        return _towards(current, goal, owned)
    return _within_subscription(current, goal, owned) if goal.subscription_changed else current


def _from_unrevoked(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
    if not _still_has(current.revoking, owned):
        return _towards(current, goal, owned)
    return _within_subscription(current, goal, owned) if goal.subscription_changed else current


def _from_unknown(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
    if owned is None or any(partitions for _, partitions in owned):
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in an unknown state. The member must abandon all its partitions and rejoin.",
        )
    return _towards(current, goal, owned)


def _towards(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
    kept, surplus = _split(current.assigned, goal)
    if surplus and _still_has(surplus, owned):
        return current.in_epoch(current.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, surplus)
    complete = True
    assigned = {topic_id: dict(partitions) for topic_id, partitions in kept.items()}
    for topic_id in sorted(goal.target.keys() & goal.subscribed):
        for partition in sorted(goal.target[topic_id] - kept.get(topic_id, {}).keys()):
            if goal.is_free(topic_id, partition):
                assigned.setdefault(topic_id, {})[partition] = goal.epoch
            else:
                complete = False
    return current.in_epoch(goal.epoch, MemberState.STABLE if complete else MemberState.UNRELEASED_PARTITIONS, assigned)


def _within_subscription(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
    """The target may be older than the subscription: unsubscribed topics are revoked before the next one."""
    kept = {topic_id: held for topic_id, held in current.assigned.items() if topic_id in goal.subscribed}
    if len(kept) == len(current.assigned):
        return current
    surplus = {topic_id: dict(held) for topic_id, held in current.revoking.items()}
    for topic_id, held in current.assigned.items():
        if topic_id not in goal.subscribed:
            surplus[topic_id] = {**surplus.get(topic_id, {}), **held}
    if _still_has(surplus, owned):
        return current.in_epoch(current.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, surplus)
    return current.in_epoch(current.member_epoch, current.state, kept)


def _split(assigned: Held, goal: Goal) -> tuple[Held, Held]:
    """The partitions that are in the target, and those that are not."""
    kept: dict[bytes, dict[int, int]] = {}
    surplus: dict[bytes, dict[int, int]] = {}
    for topic_id, held in assigned.items():
        wanted = goal.target.get(topic_id, frozenset()) if topic_id in goal.subscribed else frozenset()
        for partition, epoch in held.items():
            side = kept if partition in wanted else surplus
            side.setdefault(topic_id, {})[partition] = epoch
    return kept, surplus


def _still_has(partitions: Held, owned: Owned | None) -> bool:
    if owned is None:
        return True
    return any(number in partitions.get(topic_id, {}) for topic_id, numbers in owned for number in numbers)


_STEPS = {
    MemberState.STABLE: _from_stable,
    MemberState.UNREVOKED_PARTITIONS: _from_unrevoked,
    MemberState.UNRELEASED_PARTITIONS: _towards,
    MemberState.UNKNOWN: _from_unknown,
}
