"""The members of the quorum: the key of a replica, a voter with its addresses, and the set of voters.

A replica is identified by node id and directory id (KIP-853): a node that restarts with an empty disk has a new
directory id and must not count as the voter that it was. Voter sets are immutable. They are VotersRecord control
records in the log and in snapshots, or come from `controller.quorum.voters` if the log has none (kraft.version 0).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quire.protocol import uuids
from quire.protocol.messages import control_records
from quire.protocol.messages.control_records import KRaftVersionFeature, VotersRecord, VotersRecordVoter


class ReplicaKey(NamedTuple):
    """A node id and a directory id; ZERO if that is not known."""

    id: int
    directory_id: bytes = uuids.ZERO

    def matches(self, other: "ReplicaKey") -> bool:
        """Whether `other` is the replica that this key names; a key without a directory names any of the node's."""
        return self.id == other.id and self.directory_id in (uuids.ZERO, other.directory_id)


class Endpoint(NamedTuple):
    """An address of a voter, under the name of its listener."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    kraft_versions: tuple[int, int] = (0, 1)


class VoterSet:
    """The replicas whose votes elect a leader and whose logs commit a record, ordered by node id."""

    __slots__ = ("_by_id",)

    def __init__(self, voters: Iterable[Voter]) -> None:
        ordered = sorted(voters, key=lambda voter: voter.key.id)
        self._by_id = {voter.key.id: voter for voter in ordered}
        assert len(self._by_id) == len(ordered), "a node votes once, with one directory"

    @classmethod
    def of_ids(cls, ids: Iterable[int]) -> "VoterSet":
        return cls(Voter(ReplicaKey(id_)) for id_ in ids)

    @classmethod
    def from_record(cls, record: VotersRecord) -> "VoterSet":
        return cls(
            Voter(
                ReplicaKey(voter.voter_id, voter.voter_directory_id),
                tuple(Endpoint(end.name, end.host, end.port) for end in voter.endpoints),
                (
                    voter.k_raft_version_feature.min_supported_version,
                    voter.k_raft_version_feature.max_supported_version,
                ),
            )
            for voter in record.voters
        )

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            voters=[
                VotersRecordVoter(
                    voter_id=voter.key.id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[
                        control_records.Endpoint(name=end.name, host=end.host, port=end.port) for end in voter.endpoints
                    ],
                    k_raft_version_feature=KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions[0], max_supported_version=voter.kraft_versions[1]
                    ),
                )
                for voter in self
            ]
        )

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._by_id == other._by_id

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"VoterSet({', '.join(str(id_) for id_ in self._by_id)})"

    @property
    def ids(self) -> list[int]:
        return list(self._by_id)

    @property
    def majority(self) -> int:
        return len(self._by_id) // 2 + 1

    def includes(self, key: ReplicaKey) -> bool:
        voter = self._by_id.get(key.id)
        return voter is not None and voter.key.matches(key)

    def is_only(self, key: ReplicaKey) -> bool:
        return len(self._by_id) == 1 and self.includes(key)

    def others(self, key: ReplicaKey) -> list[int]:
        """Node ids of the voters besides `key`, ascending."""
        return [id_ for id_ in self._by_id if id_ != key.id]

    def other_keys(self, key: ReplicaKey) -> list[ReplicaKey]:
        return [voter.key for voter in self if voter.key.id != key.id]

    def get(self, id_: int) -> Voter | None:
        return self._by_id.get(id_)
