"""The records of share groups in `__consumer_offsets`; see `group_records`."""

from quire.protocol.schema import Message, Struct, array, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataKey(Message):
    API_KEY = 10
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    member_id: str = string("0")


class ShareGroupMemberMetadataValue(Message):
    API_KEY = 10
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")


class ShareGroupMetadataKey(Message):
    API_KEY = 11
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")


class ShareGroupMetadataValue(Message):
    API_KEY = 11
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    epoch: int = int32("0+")
    metadata_hash: int = int64("0+")


class ShareGroupTargetAssignmentMetadataKey(Message):
    API_KEY = 12
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")


class ShareGroupTargetAssignmentMetadataValue(Message):
    API_KEY = 12
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tag=0, tagged="0+", ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Message):
    API_KEY = 13
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    member_id: str = string("0")


class TopicPartition(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ShareGroupTargetAssignmentMemberValue(Message):
    API_KEY = 13
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topic_partitions: list[TopicPartition] = array(TopicPartition, "0+")


class ShareGroupCurrentMemberAssignmentKey(Message):
    API_KEY = 14
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    member_id: str = string("0")


class TopicPartitions(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ShareGroupCurrentMemberAssignmentValue(Message):
    API_KEY = 14
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class ShareGroupStatePartitionMetadataKey(Message):
    API_KEY = 15
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")


class TopicPartitionsInfo(Struct):
    topic_id: bytes = uuid("0+")
    topic_name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class TopicInfo(Struct):
    topic_id: bytes = uuid("0+")
    topic_name: str = string("0+")


class ShareGroupStatePartitionMetadataValue(Message):
    API_KEY = 15
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo, "0+")
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo, "0+")
    deleting_topics: list[TopicInfo] = array(TopicInfo, "0+")
