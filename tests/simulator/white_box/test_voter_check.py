"""Contradictions that the check of the voters finds."""

from quire.raft.control_state import ControlState
from quire.raft.replicas import ReplicaKey, Voter, VoterSet
from simulator.white_box.voter_check import ONE_CHANGE, SAME_VOTERS, VoterCheck
from tests.simulator.expected_violation import expect

A, B, C = (Voter(ReplicaKey(number, bytes([number]) * 16)) for number in (1, 2, 3))


def test_one_voter_may_come_or_go() -> None:
    check = VoterCheck()
    check.changes("node-1", VoterSet([A, B]), VoterSet([A, B, C]))
    check.changes("node-1", VoterSet([A, B, C]), VoterSet([B, C]))


def test_two_changes_at_once_are_found() -> None:
    with expect(ONE_CHANGE):
        VoterCheck().changes("node-1", VoterSet([A, B]), VoterSet([A, C]))


def test_a_replaced_directory_is_another_voter() -> None:
    with expect(ONE_CHANGE):
        VoterCheck().changes("node-1", VoterSet([A, B]), VoterSet([A, B._replace(key=ReplicaKey(2, b"x" * 16))]))


def test_a_leader_may_have_one_change_that_is_not_committed() -> None:
    check = VoterCheck()
    check.leads("node-1", [VoterSet([A]), VoterSet([A, B])])
    with expect(ONE_CHANGE):
        check.leads("node-1", [VoterSet([A]), VoterSet([A, B]), VoterSet([A, B, C])])


def test_nodes_that_differ_at_a_committed_offset_are_found() -> None:
    check = VoterCheck()
    check.has_committed("node-1", 5, ControlState(1, VoterSet([A, B])))
    check.has_committed("node-2", 5, ControlState(1, VoterSet([A, B])))
    check.has_committed("node-2", 6, ControlState(1, VoterSet([A])))
    with expect(SAME_VOTERS):
        check.has_committed("node-3", 5, ControlState(1, VoterSet([A])))
