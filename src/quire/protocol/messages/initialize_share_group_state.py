"""InitializeShareGroupState, API 83: version 0, flexible. Answered by brokers; needs ClusterAction."""

from quire.protocol.schema import Message, Struct, array, int16, int32, int64, string, uuid


class PartitionData(Struct):
    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")


class InitializeStateData(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class InitializeShareGroupStateRequest(Message):
    API_KEY = 83
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    group_id: str = string("0+")
    topics: list[InitializeStateData] = array(InitializeStateData, "0+")


class PartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


class InitializeStateResult(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[PartitionResult] = array(PartitionResult, "0+")


class InitializeShareGroupStateResponse(Message):
    API_KEY = 83
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    results: list[InitializeStateResult] = array(InitializeStateResult, "0+")
