"""The states of a node, and which may follow which."""

import pytest

from quire.node.node_state import ALLOWED, NodeProgress, NodeState

IN_ORDER = [
    NodeState.CATCHING_UP,
    NodeState.RECOVERING,
    NodeState.REGISTERING,
    NodeState.FENCED,
    NodeState.SERVING,
    NodeState.STOPPING,
    NodeState.STOPPED,
]


def test_a_node_goes_through_every_state_in_order() -> None:
    progress = NodeProgress()
    seen = [progress.state]
    for state in IN_ORDER:
        progress.enter(state)
        seen.append(progress.state)
    assert seen == list(NodeState)


@pytest.mark.parametrize(
    "state", [state for state in NodeState if state not in (NodeState.STOPPING, NodeState.STOPPED)]
)
def test_a_node_can_stop_in_every_state(state: NodeState) -> None:
    assert NodeState.STOPPING in ALLOWED[state]


def test_a_node_that_is_only_a_controller_serves_as_soon_as_it_has_caught_up() -> None:
    progress = NodeProgress()
    progress.enter(NodeState.CATCHING_UP)
    progress.enter(NodeState.SERVING)


def test_no_state_is_left_out_or_entered_twice() -> None:
    for state, following in ALLOWED.items():
        assert state not in following
    progress = NodeProgress()
    with pytest.raises(AssertionError, match="a node that is created cannot be serving next"):
        progress.enter(NodeState.SERVING)
    progress.enter(NodeState.STOPPING)
    with pytest.raises(AssertionError, match="a node that is stopping cannot be recovering next"):
        progress.enter(NodeState.RECOVERING)


def test_partitions_follow_the_image_only_while_fenced_or_serving() -> None:
    progress = NodeProgress()
    seen = {}
    for state in IN_ORDER:
        progress.enter(state)
        seen[state] = progress.follows_image
    assert [state for state, follows in seen.items() if follows] == [NodeState.FENCED, NodeState.SERVING]
