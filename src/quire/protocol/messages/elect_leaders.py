"""ElectLeaders, API 43: versions 0 to 2, flexible from 2. Answered by brokers and controllers."""

from quire.protocol.schema import Message, Struct, array, int8, int16, int32, string


class TopicPartitions(Struct):
    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class ElectLeadersRequest(Message):
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, "0+", nullable="0+")
    timeout_ms: int = int32("0+", default=60000)


class PartitionResult(Struct):
    partition_id: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = string("0+")
    partition_result: list[PartitionResult] = array(PartitionResult, "0+")


class ElectLeadersResponse(Message):
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    throttle_time_ms: int = int32("0+")
    # Not ignorable in Kafka's schema, but its class drops it from version 0 all the same.
    error_code: int = int16("1+", ignorable=True)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult, "0+")
