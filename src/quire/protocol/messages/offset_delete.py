"""OffsetDelete, API 47: version 0, never flexible. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, string


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = int32("0+")


class OffsetDeleteRequestTopic(Struct):
    name: str = string("0+")
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition, "0+")


class OffsetDeleteRequest(Message):
    API_KEY = 47
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0+")
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic, "0+")


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class OffsetDeleteResponseTopic(Struct):
    name: str = string("0+")
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition, "0+")


class OffsetDeleteResponse(Message):
    API_KEY = 47
    VERSIONS = (0, 0)
    FLEXIBLE = None

    error_code: int = int16("0+")
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic, "0+")
