"""Changes of the voter set, one voter at a time (KIP-853), and the upgrade of kraft.version that allows them.

Pure: from the present state and a change to the control records to append, or an ApiError with Kafka's error code. Any
majority of the old voters and any majority of the new ones have a replica in common, because only one differs. When a
leader may make a change at all is `roles/leader.py`'s to decide.
"""

from collections.abc import Mapping
from typing import NamedTuple

from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.control_state import Control
from quire.raft.replicas import ReplicaKey, Voter, VoterSet

DYNAMIC_QUORUM = 1
"""The kraft.version from which on the log names the voters."""


class AddVoter(NamedTuple):
    voter: Voter


class RemoveVoter(NamedTuple):
    key: ReplicaKey


class UpdateVoter(NamedTuple):
    """A voter's endpoints and versions changed. In a static quorum also its directory id, which the leader collects."""

    voter: Voter


class UpgradeKraftVersion(NamedTuple):
    version: int


VoterChange = AddVoter | RemoveVoter | UpdateVoter | UpgradeKraftVersion


def control_for(change: VoterChange, kraft_version: int, voters: VoterSet, reported: Mapping[int, Voter]) -> Control:
    """The records that make the change; none if nothing changes. `reported` is what voters have reported."""
    match change:
        case UpgradeKraftVersion(version):
            return _upgrade(kraft_version, version, voters, reported)
        case UpdateVoter(voter):
            updated = _updated(voters, voter, kraft_version)
            is_news = kraft_version >= DYNAMIC_QUORUM and updated != voters
            return Control(voters=updated) if is_news else Control()
    if kraft_version < DYNAMIC_QUORUM:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The voters of kraft.version {kraft_version} are fixed by controller.quorum.voters; upgrade kraft.version",
        )
    match change:
        case AddVoter(voter):
            return Control(voters=_added(voters, voter, kraft_version))
        case RemoveVoter(key):
            return Control(voters=_removed(voters, key))


def _added(voters: VoterSet, voter: Voter, kraft_version: int) -> VoterSet:
    if voters.get(voter.key.id) is not None:
        raise ApiError(
            ErrorCode.DUPLICATE_VOTER,
            f"Node {voter.key.id} is a voter already. If its disk was replaced, remove the old voter first",
        )
    if voter.key.directory_id == uuids.ZERO:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A voter needs a directory id")
    _check_supports(voter, kraft_version)
    return VoterSet([*voters, voter])


def _removed(voters: VoterSet, key: ReplicaKey) -> VoterSet:
    voter = voters.get(key.id)
    if voter is None or voter.key != key:
        raise _not_found(key)
    if len(voters) == 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node {key.id} is the only voter and cannot be removed")
    return VoterSet(each for each in voters if each.key != key)


def _updated(voters: VoterSet, voter: Voter, kraft_version: int) -> VoterSet:
    present = voters.get(voter.key.id)
    if present is None or not present.key.matches(voter.key):
        raise _not_found(voter.key)
    _check_supports(voter, kraft_version)
    return VoterSet(voter if each.key.id == voter.key.id else each for each in voters)


def _upgrade(present: int, version: int, voters: VoterSet, reported: Mapping[int, Voter]) -> Control:
    if version == present:
        return Control()
    if version != DYNAMIC_QUORUM or version < present:
        raise _cannot_upgrade(f"kraft.version cannot be changed from {present} to {version}")
    upgraded = VoterSet(reported.get(voter.key.id, voter) for voter in voters)
    for voter in upgraded:
        if voter.key.directory_id == uuids.ZERO:
            raise _cannot_upgrade(f"The directory id of voter {voter.key.id} is not known yet; start that node")
        if not voter.kraft_versions[0] <= version <= voter.kraft_versions[1]:
            raise _cannot_upgrade(f"Voter {voter.key.id} does not support kraft.version {version}; upgrade that node")
    return Control(version, upgraded)


def _check_supports(voter: Voter, kraft_version: int) -> None:
    lowest, highest = voter.kraft_versions
    if not lowest <= kraft_version <= highest:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Node {voter.key.id} supports kraft.version {lowest} to {highest}, and the quorum runs {kraft_version}",
        )


def _not_found(key: ReplicaKey) -> ApiError:
    return ApiError(
        ErrorCode.VOTER_NOT_FOUND,
        f"No voter has the id {key.id} and the directory id {uuids.to_text(key.directory_id)}",
    )


def _cannot_upgrade(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, message)
