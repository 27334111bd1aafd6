"""EndQuorumEpoch, API 54: versions 0 to 1, flexible from 1. Answered by controllers; needs ClusterAction."""

from quire.protocol.schema import Message, Struct, array, int16, int32, string, uint16, uuid


class ReplicaInfo(Struct):
    candidate_id: int = int32("1+")
    candidate_directory_id: bytes = uuid("1+")


class EndQuorumEpochRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    preferred_successors: list[int] = array(int32, "0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, "1+", ignorable=True)


class EndQuorumEpochRequestTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[EndQuorumEpochRequestPartitionData] = array(EndQuorumEpochRequestPartitionData, "0+")


class LeaderEndpoint(Struct):
    name: str = string("1+")
    host: str = string("1+")
    port: int = uint16("1+")


class EndQuorumEpochRequest(Message):
    API_KEY = 54
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    cluster_id: str | None = string("0+", nullable="0+", default=None)
    topics: list[EndQuorumEpochRequestTopicData] = array(EndQuorumEpochRequestTopicData, "0+")
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", ignorable=True)


class EndQuorumEpochResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


class EndQuorumEpochResponseTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[EndQuorumEpochResponsePartitionData] = array(EndQuorumEpochResponsePartitionData, "0+")


class NodeEndpoint(Struct):
    node_id: int = int32("1+")
    host: str = string("1+")
    port: int = uint16("1+")


class EndQuorumEpochResponse(Message):
    API_KEY = 54
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    error_code: int = int16("0+")
    topics: list[EndQuorumEpochResponseTopicData] = array(EndQuorumEpochResponseTopicData, "0+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0, tagged="1+")
