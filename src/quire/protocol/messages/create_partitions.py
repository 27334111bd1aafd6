"""CreatePartitions, API 37: versions 0 to 3, flexible from 2. Answered by brokers and controllers."""

from quire.protocol.schema import Message, Struct, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = array(int32, "0+")


class CreatePartitionsTopic(Struct):
    name: str = string("0+")
    count: int = int32("0+")
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, "0+", nullable="0+")


class CreatePartitionsRequest(Message):
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE = 2

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic, "0+")
    timeout_ms: int = int32("0+")
    validate_only: bool = boolean("0+")


class CreatePartitionsTopicResult(Struct):
    name: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


class CreatePartitionsResponse(Message):
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE = 2

    throttle_time_ms: int = int32("0+")
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult, "0+")
