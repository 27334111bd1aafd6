"""Bugs put into the metadata quorum on purpose: the checks from inside must find each of them within a few seeds."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from quire.raft.control_state import ControlHistory
from quire.raft.log_store import LogStore
from quire.raft.messages import VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.replicas import VoterSet
from quire.raft.roles.candidate import Candidate
from quire.raft.roles.leader import Leader
from quire.raft.roles.role import Role
from quire.raft.roles.unattached import Unattached
from simulator.cluster_plan import quorum_plan_of
from simulator.white_box.committed_check import SAME_IMAGE, SAME_LOG
from simulator.white_box.quorum_check import ONE_CONTROLLER, ONE_LEADER, WATERMARK
from simulator.white_box.scribe import IN_ORDER, KEPT
from simulator.white_box.vote_check import ONE_VOTE
from simulator.white_box.voter_check import ONE_CHANGE, SAME_VOTERS
from simulator.world import World

MOST_SEEDS = 25
QUICK = {"controller.quorum.election.timeout.ms": "150", "controller.quorum.fetch.timeout.ms": "300"}


STATIC: dict[str, Any] = {"first_voters": 0, "changes_voters": False}
CHANGING: dict[str, Any] = {"first_voters": 3, "auto_join": True, "changes_voters": True}


def broken_promise(nodes: int = 3, voters: Mapping[str, Any] = STATIC, **faults: int) -> str:
    """The promise that the bug breaks, and faults with which the simulator finds it."""
    for seed in range(MOST_SEEDS):
        plan = replace(quorum_plan_of(seed, nodes=nodes, scale=0.4), **voters)
        plan = replace(
            plan,
            faults={name.replace("_", " "): weight for name, weight in faults.items()},
            fault_pause_ms=150.0,
            keeps_majority=False,
            node_settings=plan.node_settings | QUICK,
        )
        outcome = World(seed, plan).run()
        if outcome.violation is not None:
            return outcome.violation.partition(":")[0]
    return "none"


def test_an_election_that_is_won_without_a_majority_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VoterSet, "majority", 1)
    assert broken_promise(partition=1) in (ONE_LEADER, ONE_CONTROLLER, SAME_LOG)


def test_a_voter_that_counts_what_is_not_on_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(self: LogStore, done: Callable[[int], None]) -> None:
        done(self._log.end_offset)

    monkeypatch.setattr(LogStore, "sync", hasty)
    assert broken_promise(power_loss=1) in (SAME_LOG, SAME_IMAGE, KEPT, IN_ORDER, WATERMARK)


def test_a_voter_that_votes_for_every_candidate_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Acts like a voter that forgets its vote: two candidates may win the same epoch."""

    def generous(self: Role, replica: Replica, request: VoteRequest) -> bool:
        return replica.is_behind(request.last)

    for role in (Role, Candidate, Unattached):
        monkeypatch.setattr(role, "grants", generous)
    assert broken_promise(5, kill=1, partition=2) in (ONE_LEADER, ONE_CONTROLLER, SAME_LOG)


def test_a_vote_that_is_not_persisted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: LogStore, election: Election, voters: VoterSet) -> None:
        """Does nothing in place of the call."""

    monkeypatch.setattr(LogStore, "write_election", forgetful)
    assert broken_promise(kill=1) == ONE_VOTE


def test_a_leader_that_changes_the_voters_again_before_the_first_change_is_committed_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Leader, "_check_may_change", lambda self, replica: None)
    assert broken_promise(5, CHANGING, partition=1) in (ONE_CHANGE, SAME_LOG, ONE_LEADER)


def test_voters_that_a_truncation_leaves_in_place_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ControlHistory, "truncate", lambda self, offset: None)
    assert broken_promise(5, CHANGING, partition=3, kill=1) in (SAME_VOTERS, ONE_CHANGE, "no callback raises")
