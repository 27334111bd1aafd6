"""Brings a member nearer to its target: one step for each heartbeat, and never two owners of a partition.

What a member's next step is depends on what it waits for:

    state                   when                                            then
    STABLE                  the target is of another epoch                  towards the target
                            it no longer subscribes to what it has          it has to give that up
    UNREVOKED_PARTITIONS    it says that it gave up what it had to          towards the target
                            it no longer subscribes to more of it           it has to give that up too
    UNRELEASED_PARTITIONS   always                                          towards the target, as far as others let it
    UNKNOWN                 it has nothing at all                           towards the target
                            otherwise                                       FENCED_MEMBER_EPOCH

Towards the target means: as long as the member has partitions that it should not have, it stays in its epoch as
UNREVOKED_PARTITIONS. After that it is in the target's epoch, gets what nobody else has, and is STABLE, or
UNRELEASED_PARTITIONS while others still have some of it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.member import CurrentAssignment, Held, MemberState
from quire.protocol.errors import ApiError, ErrorCode

Owned = Sequence[tuple[bytes, Sequence[int]]]
"""The partitions by topic id that a member says it has."""


class Goal(NamedTuple):
    """Where a member should go, as far as it still subscribes to it, and what stands in its way."""

    epoch: int
    target: Assignment
    subscribed: frozenset[bytes]
    is_free: Callable[[bytes, int], bool]
    """Whether no other member has the partition."""
    subscription_changed: bool = False


def reconcile(current: CurrentAssignment, goal: Goal, owned: Owned | None) -> CurrentAssignment:
    """The member's next step, which may be none. `owned` is None where the member did not say, or cannot be trusted
    to have said it after it was last told something."""
    return _STEPS[current.state](current, goal, owned)


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
    """The target may be older than the subscription: what is no longer subscribed to goes without waiting for it."""
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
    """What the member has and should have, and what it has and should not have."""
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
