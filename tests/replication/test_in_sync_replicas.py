"""The ISR as the controller has committed it, and as this leader has proposed it (KIP-497)."""

import pytest

from quire.replication.in_sync_replicas import InSyncReplicas
from quire.replication.members import Members


def in_sync(isr: tuple[int, ...] = (1, 2), partition_epoch: int = 5) -> InSyncReplicas:
    return InSyncReplicas(Members((1, 2, 3), isr, partition_epoch))


def test_while_a_change_is_proposed_the_members_of_both_sets_count() -> None:
    members = in_sync((1, 2))
    members.propose((1, 3))
    assert (members.committed, members.maximal) == ((1, 2), (1, 2, 3))


def test_a_committed_change_replaces_both_sets() -> None:
    members = in_sync((1, 2))
    members.propose((1,))
    assert members.commit(Members((1, 2, 3), (1,), 6))
    assert (members.committed, members.maximal, members.proposed, members.partition_epoch) == ((1,), (1,), None, 6)


def test_a_refused_change_leaves_the_committed_set() -> None:
    members = in_sync((1, 2))
    members.propose((1, 2, 3))
    members.withdraw()
    assert (members.committed, members.maximal, members.proposed) == ((1, 2), (1, 2), None)


def test_an_older_state_is_ignored() -> None:
    members = in_sync((1, 2), partition_epoch=5)
    assert not members.commit(Members((1, 2, 3), (1, 2, 3), 4))
    assert members.committed == (1, 2)


def test_the_current_state_does_not_decide_a_proposed_change() -> None:
    """The metadata may show the state from before the proposal once more."""
    members = in_sync((1, 2), partition_epoch=5)
    members.propose((1,))
    assert not members.commit(Members((1, 2, 3), (1, 2), 5))
    assert (members.proposed, members.maximal) == ((1,), (1, 2))


def test_there_is_one_proposed_change_at_a_time() -> None:
    members = in_sync()
    members.propose((1,))
    with pytest.raises(AssertionError, match="one change of the ISR at a time"):
        members.propose((1, 2, 3))


@pytest.mark.parametrize(("min_insync_replicas", "required"), [(1, 1), (3, 3), (4, 3)])
def test_no_more_replicas_are_required_than_there_are(min_insync_replicas: int, required: int) -> None:
    assert in_sync().required(min_insync_replicas) == required
