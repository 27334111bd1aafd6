"""The `quorum-state` file beside the metadata log: the epoch, the leader, and the candidate with this node's vote."""

from quire.protocol.schema import Message, Struct, array, int32, int64, string, uuid


class Voter(Struct):
    voter_id: int = int32("0")


class QuorumStateData(Message):
    API_KEY = -1
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    cluster_id: str = string("0")
    leader_id: int = int32("0+", default=-1)
    leader_epoch: int = int32("0+", default=-1)
    voted_id: int = int32("0+", default=-1)
    voted_directory_id: bytes = uuid("1+")
    applied_offset: int = int64("0")
    current_voters: list[Voter] | None = array(Voter, "0", nullable="0")
