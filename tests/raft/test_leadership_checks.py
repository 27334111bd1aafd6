"""A majority of the voters confirms a leader, in answer to an announcement sent after the request."""

from quire.raft.leadership_checks import LeadershipChecks
from quire.raft.replicas import ReplicaKey, VoterSet

OWN = ReplicaKey(1)
THREE = VoterSet.of_ids([1, 2, 3])


def test_a_majority_confirms_every_request_of_the_round() -> None:
    checks = LeadershipChecks()
    checks.add(7)
    checks.add(8)
    assert checks.begin_round()
    assert checks.take_confirmed(THREE, OWN) == []
    checks.confirm(3, checks.number)
    assert checks.take_confirmed(THREE, OWN) == [7, 8]
    assert checks.take_confirmed(THREE, OWN) == []


def test_an_answer_to_an_earlier_round_confirms_nothing() -> None:
    checks = LeadershipChecks()
    checks.add(7)
    checks.begin_round()
    checks.confirm(2, 1)
    assert checks.take_confirmed(THREE, OWN) == [7]
    checks.add(8)
    assert checks.begin_round()
    checks.confirm(3, 1)
    assert checks.take_confirmed(THREE, OWN) == []
    checks.confirm(3, 2)
    assert checks.take_confirmed(THREE, OWN) == [8]


def test_a_request_that_comes_during_a_round_waits_for_the_next() -> None:
    checks = LeadershipChecks()
    checks.add(7)
    assert checks.begin_round()
    checks.add(8)
    assert not checks.begin_round()
    checks.confirm(2, 1)
    assert checks.take_confirmed(THREE, OWN) == [7]
    assert checks.begin_round()
    assert checks.take_confirmed(THREE, OWN) == []


def test_the_only_voter_confirms_itself_and_a_leader_that_was_removed_does_not_count() -> None:
    checks = LeadershipChecks()
    checks.add(7)
    checks.begin_round()
    assert checks.take_confirmed(VoterSet.of_ids([2, 3]), OWN) == []
    checks.confirm(2, 1)
    assert checks.take_confirmed(VoterSet.of_ids([2, 3]), OWN) == []
    assert checks.take_confirmed(VoterSet.of_ids([1]), OWN) == [7]


def test_a_replica_that_does_not_vote_confirms_nothing() -> None:
    checks = LeadershipChecks()
    checks.add(7)
    checks.begin_round()
    checks.confirm(4, 1)
    assert checks.take_confirmed(THREE, OWN) == []


def test_only_voters_that_have_not_answered_are_asked_again() -> None:
    checks = LeadershipChecks()
    assert not checks.lacks(2)
    checks.add(7)
    checks.begin_round()
    checks.confirm(2, 1)
    assert (checks.lacks(2), checks.lacks(3)) == (False, True)


def test_the_end_of_a_term_ends_every_request() -> None:
    checks = LeadershipChecks()
    checks.add(7)
    checks.begin_round()
    checks.add(8)
    assert checks.take_all() == [7, 8]
    assert not checks.begin_round()
