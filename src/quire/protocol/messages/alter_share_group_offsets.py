"""AlterShareGroupOffsets, API 91: version 0, flexible. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = int32("0+")
    start_offset: int = int64("0+")


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(AlterShareGroupOffsetsRequestPartition, "0+")


class AlterShareGroupOffsetsRequest(Message):
    API_KEY = 91
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    group_id: str = string("0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic, "0+")


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+")
    topic_id: bytes = uuid("0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(AlterShareGroupOffsetsResponsePartition, "0+")


class AlterShareGroupOffsetsResponse(Message):
    API_KEY = 91
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(AlterShareGroupOffsetsResponseTopic, "0+")
