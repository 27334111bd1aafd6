"""DeleteShareGroupOffsets, API 92: version 0, flexible. Answered by brokers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+")


class DeleteShareGroupOffsetsRequest(Message):
    API_KEY = 92
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    group_id: str = string("0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic, "0+")


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+")
    topic_id: bytes = uuid("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


class DeleteShareGroupOffsetsResponse(Message):
    API_KEY = 92
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(DeleteShareGroupOffsetsResponseTopic, "0+")
