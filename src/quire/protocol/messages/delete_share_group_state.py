"""DeleteShareGroupState, API 86: version 0, flexible. Answered by brokers; needs ClusterAction."""

from quire.protocol.schema import Message, Struct, array, int16, int32, string, uuid


class PartitionData(Struct):
    partition: int = int32("0+")


class DeleteStateData(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class DeleteShareGroupStateRequest(Message):
    API_KEY = 86
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    group_id: str = string("0+")
    topics: list[DeleteStateData] = array(DeleteStateData, "0+")


class PartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


class DeleteStateResult(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[PartitionResult] = array(PartitionResult, "0+")


class DeleteShareGroupStateResponse(Message):
    API_KEY = 86
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    results: list[DeleteStateResult] = array(DeleteStateResult, "0+")
