"""AssignReplicasToDirs, API 73: version 0, flexible. Answered by controllers."""

from quire.protocol.schema import Message, Struct, array, int16, int32, int64, uuid


class AssignReplicasToDirsRequestPartitionData(Struct):
    partition_index: int = int32("0+")


class AssignReplicasToDirsRequestTopicData(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[AssignReplicasToDirsRequestPartitionData] = array(AssignReplicasToDirsRequestPartitionData, "0+")


class AssignReplicasToDirsRequestDirectoryData(Struct):
    id: bytes = uuid("0+")
    topics: list[AssignReplicasToDirsRequestTopicData] = array(AssignReplicasToDirsRequestTopicData, "0+")


class AssignReplicasToDirsRequest(Message):
    API_KEY = 73
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    directories: list[AssignReplicasToDirsRequestDirectoryData] = array(AssignReplicasToDirsRequestDirectoryData, "0+")


class AssignReplicasToDirsResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class AssignReplicasToDirsResponseTopicData(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[AssignReplicasToDirsResponsePartitionData] = array(AssignReplicasToDirsResponsePartitionData, "0+")


class AssignReplicasToDirsResponseDirectoryData(Struct):
    id: bytes = uuid("0+")
    topics: list[AssignReplicasToDirsResponseTopicData] = array(AssignReplicasToDirsResponseTopicData, "0+")


class AssignReplicasToDirsResponse(Message):
    API_KEY = 73
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    directories: list[AssignReplicasToDirsResponseDirectoryData] = array(
        AssignReplicasToDirsResponseDirectoryData, "0+"
    )
