"""BeginQuorumEpoch, API 53: versions 0 to 1, flexible from 1. Answered by controllers; needs ClusterAction."""

from quire.protocol.schema import Message, Struct, array, int16, int32, string, uint16, uuid


class BeginQuorumEpochRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    voter_directory_id: bytes = uuid("1+", ignorable=True)
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


class BeginQuorumEpochRequestTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[BeginQuorumEpochRequestPartitionData] = array(BeginQuorumEpochRequestPartitionData, "0+")


class LeaderEndpoint(Struct):
    name: str = string("1+")
    host: str = string("1+")
    port: int = uint16("1+")


class BeginQuorumEpochRequest(Message):
    API_KEY = 53
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    cluster_id: str | None = string("0+", nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[BeginQuorumEpochRequestTopicData] = array(BeginQuorumEpochRequestTopicData, "0+")
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", ignorable=True)


class BeginQuorumEpochResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


class BeginQuorumEpochResponseTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[BeginQuorumEpochResponsePartitionData] = array(BeginQuorumEpochResponsePartitionData, "0+")


class NodeEndpoint(Struct):
    node_id: int = int32("1+")
    host: str = string("1+")
    port: int = uint16("1+")


class BeginQuorumEpochResponse(Message):
    API_KEY = 53
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    error_code: int = int16("0+")
    topics: list[BeginQuorumEpochResponseTopicData] = array(BeginQuorumEpochResponseTopicData, "0+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0, tagged="1+")
