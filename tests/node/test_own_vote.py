"""What a controller requests to correct its entry in the voter set."""

import pytest

from quire.node.own_vote import Wanted, wanted_change
from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from quire.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet

OWN = Voter(ReplicaKey(1, b"a" * 16), (Endpoint("CONTROLLER", "here", 9093),), (0, 1))
OTHER = Voter(ReplicaKey(2, b"b" * 16), (Endpoint("CONTROLLER", "there", 9093),), (0, 1))
MOVED = OWN._replace(endpoints=(Endpoint("CONTROLLER", "elsewhere", 9093),))


def wanted(
    *voters: Voter, kraft_version: int = 1, may_join: bool = False, has_reported: bool = False
) -> type[Wanted] | None:
    request = wanted_change(
        OWN,
        VoterSet(voters),
        kraft_version=kraft_version,
        epoch=3,
        cluster_id="cluster",
        may_join=may_join,
        has_reported=has_reported,
    )
    return None if request is None else type(request)


def test_a_voter_that_is_named_right_asks_for_nothing() -> None:
    assert wanted(OWN, OTHER) is None


def test_a_voter_that_listens_elsewhere_says_so() -> None:
    assert wanted(MOVED, OTHER) is UpdateRaftVoterRequest


def test_the_only_voter_keeps_its_old_address_because_no_other_uses_it() -> None:
    assert wanted(MOVED) is None


@pytest.mark.parametrize(("may_join", "request_"), [(False, None), (True, AddRaftVoterRequest)])
def test_a_controller_without_a_vote_joins_if_it_may(may_join: bool, request_: type[Wanted] | None) -> None:
    assert wanted(OTHER, may_join=may_join) is request_


def test_a_controller_that_knows_no_voters_yet_waits() -> None:
    assert wanted(may_join=True) is None


@pytest.mark.parametrize(("may_join", "request_"), [(False, None), (True, RemoveRaftVoterRequest)])
def test_a_voter_whose_disk_was_replaced_first_removes_its_former_self(
    may_join: bool, request_: type[Wanted] | None
) -> None:
    former = OWN._replace(key=ReplicaKey(1, b"x" * 16))
    assert wanted(former, OTHER, may_join=may_join) is request_


def test_a_static_voter_tells_each_leader_its_directory_once() -> None:
    static = Voter(ReplicaKey(1), OWN.endpoints)
    assert wanted(static, OTHER, kraft_version=0) is UpdateRaftVoterRequest
    assert wanted(static, OTHER, kraft_version=0, has_reported=True) is None
    assert wanted(OTHER, kraft_version=0, may_join=True) is None
