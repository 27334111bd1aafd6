"""One round of votes: when it is won or lost, and which voters are asked again."""

from math import inf

import pytest

from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.votes import VoteRound


def round_of(*voters: int, own: int = 1) -> VoteRound:
    return VoteRound(VoterSet.of_ids(voters), ReplicaKey(own))


def test_the_only_voter_has_won() -> None:
    assert round_of(1).won


def test_a_majority_wins() -> None:
    votes = round_of(1, 2, 3)
    assert not votes.won
    votes.count(3, granted=True)
    assert votes.won and not votes.lost
    assert votes.granting == (ReplicaKey(1), ReplicaKey(3))


def test_a_replica_that_is_not_a_voter_does_not_vote_for_itself() -> None:
    votes = round_of(1, 2, 3, own=4)
    votes.count(1, granted=True)
    assert not votes.won
    votes.count(2, granted=True)
    assert votes.won


def test_the_answer_of_a_replica_without_a_vote_does_not_count() -> None:
    votes = round_of(1, 2, 3)
    votes.count(9, granted=True)
    votes.unreached(9, 100)
    assert not votes.won and votes.take_unreached() == []


def test_the_first_answer_of_a_voter_counts() -> None:
    votes = round_of(1, 2, 3)
    votes.count(2, granted=False)
    votes.count(2, granted=True)
    assert not votes.won


@pytest.mark.parametrize(("refusals", "lost"), [((2,), False), ((2, 3), False), ((2, 3, 4), True)])
def test_it_is_lost_when_no_majority_is_left(refusals: tuple[int, ...], lost: bool) -> None:
    votes = round_of(1, 2, 3, 4, 5)
    for voter in refusals:
        votes.count(voter, granted=False)
    assert votes.lost is lost


def test_it_is_lost_if_one_refused_and_the_others_cannot_be_reached() -> None:
    votes = round_of(1, 2, 3)
    votes.unreached(2, 100)
    votes.unreached(3, 100)
    assert not votes.lost, "none has refused"
    votes.count(3, granted=False)
    assert votes.lost


def test_voters_that_were_not_reached_are_asked_again_at_the_earliest_time_that_any_needs() -> None:
    votes = round_of(1, 2, 3, 4, 5)
    for voter, at_ms in ((2, 300), (3, 100), (4, 200)):
        votes.unreached(voter, at_ms)
    assert votes.ask_again_at_ms == 100
    votes.count(4, granted=True)
    assert votes.take_unreached() == [ReplicaKey(2), ReplicaKey(3)], "node 4 has answered meanwhile"
    assert votes.ask_again_at_ms == inf
    assert votes.take_unreached() == []
