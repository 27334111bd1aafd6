"""The table at the top of `reconciliation`, row by row."""

import pytest

from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.member import CurrentAssignment, Held, MemberState
from quire.coordinators.group.consumer.reconciliation import Goal, Owned, reconcile, repeat
from quire.protocol.errors import ApiError, ErrorCode

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def held(*partitions: int, epoch: int = 5, topic: bytes = T) -> Held:
    return {topic: dict.fromkeys(partitions, epoch)} if partitions else {}


def goal(
    *partitions: int,
    epoch: int = 6,
    taken: tuple[int, ...] = (),
    subscribed: tuple[bytes, ...] = (T, U),
    changed: bool = False,
) -> Goal:
    target: Assignment = {T: frozenset(partitions)} if partitions else {}
    return Goal(epoch, target, frozenset(subscribed), lambda topic, partition: partition not in taken, changed)


def owning(*partitions: int) -> Owned:
    return [(T, partitions)]


def test_a_stable_member_in_the_targets_epoch_stays_as_it_is() -> None:
    current = CurrentAssignment(6, 5, STABLE, held(0, 1))
    assert reconcile(current, goal(0, 1), owning(0, 1)) is current


def test_a_stable_member_reaches_the_targets_epoch_with_the_free_partitions() -> None:
    current = CurrentAssignment(5, 4, STABLE, held(0, epoch=3))
    assert reconcile(current, goal(0, 1), None) == CurrentAssignment(6, 5, STABLE, {T: {0: 3, 1: 6}})


def test_partitions_of_other_members_are_waited_for() -> None:
    current = CurrentAssignment(5, 4, STABLE, held(0))
    after = reconcile(current, goal(0, 1, 2, taken=(2,)), None)
    assert after == CurrentAssignment(6, 5, UNRELEASED, {T: {0: 5, 1: 6}})
    assert reconcile(after, goal(0, 1, 2, taken=(2,)), None).assigned == after.assigned
    assert reconcile(after, goal(0, 1, 2), None) == CurrentAssignment(6, 6, STABLE, {T: {0: 5, 1: 6, 2: 6}})


@pytest.mark.parametrize("owned", [None, owning(0, 1), owning(1)])
def test_a_member_stays_in_its_epoch_until_it_has_given_up_what_it_should_not_have(owned: Owned | None) -> None:
    current = CurrentAssignment(5, 4, STABLE, held(0, 1))
    after = reconcile(current, goal(0, 2), owned)
    assert after == CurrentAssignment(5, 5, UNREVOKED, held(0), held(1))
    assert reconcile(after, goal(0, 2), owned) is after


@pytest.mark.parametrize("owned", [[], owning(0), owning(0, 7), [(U, [1])]])
def test_a_member_that_has_revoked_its_partitions_continues(owned: Owned) -> None:
    current = CurrentAssignment(5, 5, UNREVOKED, held(0), held(1))
    assert reconcile(current, goal(0, 2), owned) == CurrentAssignment(6, 5, STABLE, {T: {0: 5, 2: 6}})


def test_a_member_that_no_longer_has_what_it_should_give_up_need_not_be_asked() -> None:
    current = CurrentAssignment(5, 4, STABLE, held(0, 1))
    assert reconcile(current, goal(0), owning(0)) == CurrentAssignment(6, 5, STABLE, held(0))


def test_the_target_may_have_changed_again_when_a_member_has_given_something_up() -> None:
    current = CurrentAssignment(5, 5, UNREVOKED, held(0, 1), held(2))
    after = reconcile(current, goal(1, 2, epoch=7), owning(0, 1))
    assert after == CurrentAssignment(5, 5, UNREVOKED, held(1), held(0))


def test_a_member_gets_back_what_it_has_just_given_up_when_the_target_says_so() -> None:
    current = CurrentAssignment(5, 5, UNREVOKED, held(0), held(1))
    assert reconcile(current, goal(0, 1, epoch=7), owning(0)) == CurrentAssignment(7, 5, STABLE, {T: {0: 5, 1: 7}})


def test_unsubscribed_partitions_are_revoked_even_if_the_target_is_older() -> None:
    current = CurrentAssignment(6, 5, STABLE, {**held(0, 1), **held(0, topic=U)})
    after = reconcile(current, goal(0, 1, subscribed=(U,), changed=True), None)
    assert after == CurrentAssignment(6, 6, UNREVOKED, held(0, topic=U), held(0, 1))


def test_unsubscribed_partitions_that_are_being_revoked_are_not_waited_for() -> None:
    current = CurrentAssignment(6, 5, STABLE, {**held(0, 1), **held(0, topic=U)})
    after = reconcile(current, goal(0, 1, subscribed=(U,), changed=True), [(U, [0])])
    assert after == CurrentAssignment(6, 6, STABLE, held(0, topic=U))


def test_a_member_that_is_revoking_partitions_may_have_to_revoke_more() -> None:
    current = CurrentAssignment(5, 5, UNREVOKED, {**held(0), **held(0, topic=U)}, held(1))
    after = reconcile(current, goal(0, subscribed=(U,), changed=True), owning(0, 1))
    assert after == CurrentAssignment(5, 5, UNREVOKED, held(0, topic=U), held(0, 1))


def test_a_target_is_not_followed_where_the_member_does_not_subscribe_any_more() -> None:
    current = CurrentAssignment(5, 4, STABLE, held(0))
    assert reconcile(current, goal(0, 1, subscribed=(U,)), []) == CurrentAssignment(6, 5, STABLE, {})


def test_a_member_in_a_state_of_the_future_has_to_begin_again() -> None:
    current = CurrentAssignment(5, 4, MemberState.UNKNOWN, held(0))
    for owned in (None, owning(0)):
        with pytest.raises(ApiError) as refusal:
            reconcile(current, goal(0), owned)
        assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert reconcile(current, goal(0), []) == CurrentAssignment(6, 5, STABLE, held(0))


# --- Late requests


@pytest.mark.parametrize("state", [STABLE, UNREVOKED, UNRELEASED])
def test_a_late_member_revokes_what_it_no_longer_subscribes_to_and_takes_no_other_step(state: MemberState) -> None:
    current = CurrentAssignment(5, 4, state, {**held(0, 1), **held(0, topic=U)}, held(2) if state == UNREVOKED else {})
    after = repeat(current, goal(3, subscribed=(U,), changed=True), [])
    revoking = held(0, 1, 2) if state == UNREVOKED else held(0, 1)
    assert after == CurrentAssignment(5, 4, UNREVOKED, held(0, topic=U), revoking)


def test_a_late_member_keeps_its_assignment_within_its_subscription() -> None:
    current = CurrentAssignment(5, 4, STABLE, held(0, 1))
    assert repeat(current, goal(3, changed=True), owning(0)) == current


def test_a_late_member_that_would_not_report_again_is_told_of_what_it_must_revoke() -> None:
    current = CurrentAssignment(5, 4, STABLE, {**held(0, 1), **held(0, topic=U)})
    assert repeat(current, goal(subscribed=(U,), changed=True), [(U, [0])]) is current
