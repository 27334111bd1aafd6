"""Contradictions that the check of votes finds."""

import pytest

from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey
from simulator.white_box.vote_check import ONE_VOTE, VoteCheck
from tests.simulator.expected_violation import expect

VOTER = ReplicaKey(1, b"a" * 16)
FIRST, SECOND = ReplicaKey(2, b"b" * 16), ReplicaKey(3, b"c" * 16)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (Election(4, None, FIRST), Election(4, None, SECOND)),
        (Election(4, None, FIRST), Election(4)),
        (Election(4, None, FIRST), Election(3)),
        (Election(4, 2), Election(4, 3)),
        (Election(4, 2), Election(4, None, SECOND)),
    ],
    ids=["another vote", "a forgotten vote", "an earlier epoch", "another leader", "a forgotten leader"],
)
def test_a_voter_that_forgets_is_found(before: Election, now: Election) -> None:
    check = VoteCheck()
    check.knows(VOTER, before)
    with expect(ONE_VOTE):
        check.knows(VOTER, now)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (Election(4), Election(4, None, FIRST)),
        (Election(4), Election(4, 2)),
        (Election(4, None, FIRST), Election(4, None, FIRST)),
        (Election(4, None, FIRST), Election(4, None, ReplicaKey(FIRST.id))),
        (Election(4, None, FIRST), Election(4, 3)),
        (Election(4, None, FIRST), Election(5)),
        (Election(4, 2), Election(4, 2)),
    ],
)
def test_allowed_changes_of_an_election_are_accepted(before: Election, now: Election) -> None:
    check = VoteCheck()
    check.knows(VOTER, before)
    check.knows(VOTER, now)


def test_a_node_with_a_new_directory_is_another_voter() -> None:
    check = VoteCheck()
    check.knows(VOTER, Election(4, None, FIRST))
    check.knows(VOTER._replace(directory_id=b"z" * 16), Election())
