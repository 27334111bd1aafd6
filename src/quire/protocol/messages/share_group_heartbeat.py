"""ShareGroupHeartbeat, API 76: version 1, flexible. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, nested, string, uuid


class ShareGroupHeartbeatRequest(Message):
    API_KEY = 76
    VERSIONS = (1, 1)
    FLEXIBLE = 0

    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    rack_id: str | None = string("0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array(string, "0+", nullable="0+", default=None)


class TopicPartitions(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class ShareGroupHeartbeatResponse(Message):
    API_KEY = 76
    VERSIONS = (1, 1)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = nested(Assignment, "0+", nullable="0+", default=None)
