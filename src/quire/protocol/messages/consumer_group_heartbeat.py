"""ConsumerGroupHeartbeat, API 68: versions 0 to 1, flexible. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, nested, string, uuid


class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerGroupHeartbeatRequest(Message):
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array(string, "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string("0+", nullable="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = array(
        ConsumerGroupHeartbeatRequestTopicPartitions, "0+", nullable="0+", default=None
    )


class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class Assignment(Struct):
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = array(
        ConsumerGroupHeartbeatResponseTopicPartitions, "0+"
    )


class ConsumerGroupHeartbeatResponse(Message):
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = nested(Assignment, "0+", nullable="0+", default=None)
