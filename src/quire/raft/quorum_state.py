"""The election state that a replica must not forget, and Kafka's `quorum-state` file that keeps it.

In one epoch a replica votes at most once and knows at most one leader, through any number of restarts. The file
is JSON: version 1 goes with kraft.version 1, version 0 (with the voters in it) with kraft.version 0.
"""

import json
from typing import NamedTuple

from quire.protocol import uuids
from quire.raft.errors import MetadataLogError
from quire.raft.replicas import ReplicaKey, VoterSet

FILE_NAME = "quorum-state"


class QuorumStateError(MetadataLogError):
    """The file exists but cannot be read: a replica that started anyway could vote twice in one epoch."""


class Election(NamedTuple):
    """What is known of one epoch. Once its leader is known, the vote no longer matters and is dropped."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None

    def may_become(self, later: "Election") -> bool:
        """Whether going from here to `later` breaks no promise."""
        if later.epoch != self.epoch:
            return later.epoch > self.epoch
        if self.leader_id is not None:
            return later.leader_id == self.leader_id
        return later.leader_id is not None or self.voted is None or later.voted == self.voted


def encode(election: Election, voters: VoterSet, kraft_version: int) -> bytes:
    voted = election.voted or ReplicaKey(-1)
    leader_id = -1 if election.leader_id is None else election.leader_id
    state: dict[str, object]
    if kraft_version >= 1:
        state = {
            "leaderId": leader_id,
            "leaderEpoch": election.epoch,
            "votedId": voted.id,
            "votedDirectoryId": uuids.to_text(voted.directory_id),
            "data_version": 1,
        }
    else:
        state = {
            "clusterId": "",
            "leaderId": leader_id,
            "leaderEpoch": election.epoch,
            "votedId": voted.id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": id_} for id_ in voters.ids],
            "data_version": 0,
        }
    return json.dumps(state, separators=(",", ":")).encode()


def decode(content: bytes) -> Election:
    try:
        state = json.loads(content)
        version = state["data_version"]
        if version not in (0, 1):
            raise QuorumStateError(f"quorum-state has version {version}; this node reads versions 0 and 1")
        leader_id, epoch, voted_id = (int(state[name]) for name in ("leaderId", "leaderEpoch", "votedId"))
        directory_id = uuids.from_text(state["votedDirectoryId"]) if version == 1 else uuids.ZERO
    except (ValueError, KeyError, TypeError) as error:
        raise QuorumStateError(
            f"quorum-state is damaged ({error!r}); restore it from a backup, or format a new directory for this node"
        ) from error
    return Election(
        epoch,
        None if leader_id < 0 else leader_id,
        None if voted_id < 0 or leader_id >= 0 else ReplicaKey(voted_id, directory_id),
    )
