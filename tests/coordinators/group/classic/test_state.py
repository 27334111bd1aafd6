"""The states of a classic group and their transitions."""

import pytest

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.state import HEARTBEAT_ERRORS, TRANSITIONS, ClassicState


def test_every_state_says_what_may_follow_it_and_what_a_heartbeat_gets() -> None:
    assert TRANSITIONS.keys() == HEARTBEAT_ERRORS.keys() == set(ClassicState)


def test_every_state_but_dead_can_be_left_and_all_can_be_reached() -> None:
    assert [state for state, following in TRANSITIONS.items() if not following] == [ClassicState.DEAD]
    assert {following for each in TRANSITIONS.values() for following in each} == set(ClassicState)


@pytest.mark.parametrize("before", ClassicState)
@pytest.mark.parametrize("after", ClassicState)
def test_a_group_moves_only_as_the_table_says(before: ClassicState, after: ClassicState) -> None:
    group = ClassicGroup("g", lambda member: None)
    group.state = before
    if after in TRANSITIONS[before]:
        group.move_to(after, 7)
        assert (group.state, group.state_since_ms) == (after, 7)
    else:
        with pytest.raises(AssertionError, match=f"cannot become {after.value}"):
            group.move_to(after, 7)
