"""DeleteTopics, API 20: versions 1 to 6, flexible from 4. Answered by brokers and controllers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: bytes = uuid("6+")


class DeleteTopicsRequest(Message):
    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE = 4

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


class DeletableTopicResult(Struct):
    name: str | None = string("0+", nullable="6+")
    topic_id: bytes = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Message):
    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE = 4

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult, "0+")
