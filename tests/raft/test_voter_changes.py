"""Which changes of the voters are allowed, and what they lead to."""

from collections.abc import Mapping

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.control_state import Control
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.raft.voter_changes import (
    AddVoter,
    RemoveVoter,
    UpdateVoter,
    UpgradeKraftVersion,
    VoterChange,
    control_for,
)


def voter(id_: int, directory: bytes = b"d", kraft_versions: tuple[int, int] = (0, 1)) -> Voter:
    return Voter(ReplicaKey(id_, directory * 16), (), kraft_versions)


ONE_AND_TWO = VoterSet([voter(1), voter(2)])
STATIC = VoterSet.of_ids([1, 2])


def changed(change: VoterChange, voters: VoterSet = ONE_AND_TWO) -> Control:
    return control_for(change, 1, voters, {})


def refusal(change: VoterChange, version: int = 1, reported: Mapping[int, Voter] | None = None) -> ErrorCode:
    with pytest.raises(ApiError) as raised:
        control_for(change, version, ONE_AND_TWO if version else STATIC, reported or {})
    assert raised.value.message
    return raised.value.code


def test_a_voter_is_added() -> None:
    assert changed(AddVoter(voter(3))) == Control(voters=VoterSet([voter(1), voter(2), voter(3)]))


def test_a_node_votes_once_in_any_directory() -> None:
    assert refusal(AddVoter(voter(2))) is ErrorCode.DUPLICATE_VOTER
    assert refusal(AddVoter(voter(2, b"e"))) is ErrorCode.DUPLICATE_VOTER


def test_a_voter_needs_a_directory_and_support_for_the_version() -> None:
    assert refusal(AddVoter(Voter(ReplicaKey(3)))) is ErrorCode.INVALID_REQUEST
    assert refusal(AddVoter(voter(3, kraft_versions=(0, 0)))) is ErrorCode.INVALID_REQUEST


def test_a_voter_is_removed_by_its_whole_key() -> None:
    assert changed(RemoveVoter(voter(2).key)) == Control(voters=VoterSet([voter(1)]))
    assert refusal(RemoveVoter(voter(2, b"e").key)) is ErrorCode.VOTER_NOT_FOUND
    assert refusal(RemoveVoter(ReplicaKey(2))) is ErrorCode.VOTER_NOT_FOUND
    assert refusal(RemoveVoter(voter(3).key)) is ErrorCode.VOTER_NOT_FOUND


def test_the_last_voter_stays() -> None:
    with pytest.raises(ApiError) as raised:
        changed(RemoveVoter(voter(1).key), VoterSet([voter(1)]))
    assert raised.value.code is ErrorCode.INVALID_REQUEST


def test_a_voter_gets_new_endpoints() -> None:
    moved = voter(2)._replace(endpoints=(Endpoint("CONTROLLER", "elsewhere", 9093),))
    assert changed(UpdateVoter(moved)) == Control(voters=VoterSet([voter(1), moved]))
    assert changed(UpdateVoter(voter(2))) == Control(), "nothing is new"
    assert refusal(UpdateVoter(voter(2, b"e"))) is ErrorCode.VOTER_NOT_FOUND
    assert refusal(UpdateVoter(voter(3))) is ErrorCode.VOTER_NOT_FOUND
    assert refusal(UpdateVoter(voter(2, kraft_versions=(0, 0)))) is ErrorCode.INVALID_REQUEST


def test_a_static_quorum_is_not_changed() -> None:
    assert refusal(AddVoter(voter(3)), version=0) is ErrorCode.UNSUPPORTED_VERSION
    assert refusal(RemoveVoter(voter(1).key), version=0) is ErrorCode.UNSUPPORTED_VERSION
    assert control_for(UpdateVoter(voter(1)), 0, STATIC, {}) == Control(), "the leader only remembers it"


def test_an_upgrade_writes_the_voters_with_their_directories() -> None:
    reported = {1: voter(1), 2: voter(2)}
    assert control_for(UpgradeKraftVersion(1), 0, STATIC, reported) == Control(1, ONE_AND_TWO)
    assert control_for(UpgradeKraftVersion(0), 0, STATIC, {}) == Control()


def test_an_upgrade_waits_until_every_voter_is_known_and_supports_it() -> None:
    upgrade = UpgradeKraftVersion(1)
    assert refusal(upgrade, 0, {1: voter(1)}) is ErrorCode.INVALID_UPDATE_VERSION
    old = voter(2, kraft_versions=(0, 0))
    assert refusal(upgrade, 0, {1: voter(1), 2: old}) is ErrorCode.INVALID_UPDATE_VERSION
    assert refusal(UpgradeKraftVersion(2), 0) is ErrorCode.INVALID_UPDATE_VERSION
    assert refusal(UpgradeKraftVersion(0), 1) is ErrorCode.INVALID_UPDATE_VERSION
