"""DescribeTopicPartitions, API 75: version 0, flexible. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, boolean, int16, int32, nested, string, uuid


class TopicRequest(Struct):
    name: str = string("0+")


class DescribeTopicPartitionsRequestCursor(Struct):
    topic_name: str = string("0+")
    partition_index: int = int32("0+")


class DescribeTopicPartitionsRequest(Message):
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topics: list[TopicRequest] = array(TopicRequest, "0+")
    response_partition_limit: int = int32("0+", default=2000)
    cursor: DescribeTopicPartitionsRequestCursor | None = nested(
        DescribeTopicPartitionsRequestCursor, "0+", nullable="0+", default=None
    )


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32, "0+")
    isr_nodes: list[int] = array(int32, "0+")
    eligible_leader_replicas: list[int] | None = array(int32, "0+", nullable="0+", default=None)
    last_known_elr: list[int] | None = array(int32, "0+", nullable="0+", default=None)
    offline_replicas: list[int] = array(int32, "0+", ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="0+")
    topic_id: bytes = uuid("0+", ignorable=True)
    is_internal: bool = boolean("0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(DescribeTopicPartitionsResponsePartition, "0+")
    topic_authorized_operations: int = int32("0+", default=-0x80000000)


class DescribeTopicPartitionsResponseCursor(Struct):
    topic_name: str = string("0+")
    partition_index: int = int32("0+")


class DescribeTopicPartitionsResponse(Message):
    API_KEY = 75
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic, "0+")
    next_cursor: DescribeTopicPartitionsResponseCursor | None = nested(
        DescribeTopicPartitionsResponseCursor, "0+", nullable="0+", default=None
    )
