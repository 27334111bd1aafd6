"""The records of `__consumer_offsets`: committed offsets, and groups with their members.

The records of share and streams groups have modules of their own; the tables at the end name them all. A key is
preceded by its API_KEY as an int16, a value by its version as an int16; a null value is a tombstone.
"""

from quire.protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from quire.protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from quire.protocol.schema import Message, Struct, array, binary, int8, int32, int64, nested, string, uuid


class LegacyOffsetCommitKey(Message):
    API_KEY = 0
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


class LegacyOffsetCommitValue(Message):
    API_KEY = 0
    VERSIONS = (0, 0)
    FLEXIBLE = None

    offset: int = int64("0")
    metadata: str = string("0")
    commit_timestamp: int = int64("0")


class OffsetCommitKey(Message):
    API_KEY = 1
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


class OffsetCommitValue(Message):
    API_KEY = 1
    VERSIONS = (0, 4)
    FLEXIBLE = 4

    offset: int = int64("0+")
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: bytes = uuid("4+", tag=0, tagged="4+", ignorable=True)


class GroupMetadataKey(Message):
    API_KEY = 2
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group: str = string("0")


class MemberMetadata(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32("0+")
    subscription: bytes = binary("0+")
    assignment: bytes = binary("0+")


class GroupMetadataValue(Message):
    API_KEY = 2
    VERSIONS = (0, 4)
    FLEXIBLE = 4

    protocol_type: str = string("0+")
    generation: int = int32("0+")
    protocol: str | None = string("0+", nullable="0+")
    leader: str | None = string("0+", nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata, "0+")


class ConsumerGroupMetadataKey(Message):
    API_KEY = 3
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")


class ConsumerGroupMetadataValue(Message):
    API_KEY = 3
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    epoch: int = int32("0+")
    metadata_hash: int = int64("0+", tag=0, tagged="0+")


class ConsumerGroupPartitionMetadataKey(Message):
    API_KEY = 4
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")


class PartitionMetadata(Struct):
    partition: int = int32("0+")
    racks: list[str] = array(string, "0+")


class TopicMetadata(Struct):
    topic_id: bytes = uuid("0+")
    topic_name: str = string("0+")
    num_partitions: int = int32("0+")
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata, "0+")


class ConsumerGroupPartitionMetadataValue(Message):
    API_KEY = 4
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topics: list[TopicMetadata] = array(TopicMetadata, "0+")


class ConsumerGroupMemberMetadataKey(Message):
    API_KEY = 5
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    member_id: str = string("0")


class ClassicProtocol(Struct):
    name: str = string("0+")
    metadata: bytes = binary("0+")


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = int32("0+")
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol, "0+")


class ConsumerGroupMemberMetadataValue(Message):
    API_KEY = 5
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    instance_id: str | None = string("0+", nullable="0+")
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable="0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    server_assignor: str | None = string("0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, "0+", nullable="0+", tag=0, tagged="0+"
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    API_KEY = 6
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    API_KEY = 6
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tag=0, tagged="0+", ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(Message):
    API_KEY = 7
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    member_id: str = string("0")


class TopicPartition(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerGroupTargetAssignmentMemberValue(Message):
    API_KEY = 7
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topic_partitions: list[TopicPartition] = array(TopicPartition, "0+")


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    API_KEY = 8
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    member_id: str = string("0")


class TopicPartitions(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")
    assignment_epochs: list[int] | None = array(int32, "0+", nullable="0+", tag=0, tagged="0+")


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    API_KEY = 8
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions, "0+")


class ConsumerGroupRegularExpressionKey(Message):
    API_KEY = 16
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    regular_expression: str = string("0")


class ConsumerGroupRegularExpressionValue(Message):
    API_KEY = 16
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topics: list[str] = array(string, "0+")
    version: int = int64("0+")
    timestamp: int = int64("0+")


KEY_TYPES: dict[int, type[Message]] = {
    0: LegacyOffsetCommitKey,
    1: OffsetCommitKey,
    2: GroupMetadataKey,
    3: ConsumerGroupMetadataKey,
    4: ConsumerGroupPartitionMetadataKey,
    5: ConsumerGroupMemberMetadataKey,
    6: ConsumerGroupTargetAssignmentMetadataKey,
    7: ConsumerGroupTargetAssignmentMemberKey,
    8: ConsumerGroupCurrentMemberAssignmentKey,
    10: ShareGroupMemberMetadataKey,
    11: ShareGroupMetadataKey,
    12: ShareGroupTargetAssignmentMetadataKey,
    13: ShareGroupTargetAssignmentMemberKey,
    14: ShareGroupCurrentMemberAssignmentKey,
    15: ShareGroupStatePartitionMetadataKey,
    16: ConsumerGroupRegularExpressionKey,
    17: StreamsGroupMetadataKey,
    19: StreamsGroupMemberMetadataKey,
    20: StreamsGroupTargetAssignmentMetadataKey,
    21: StreamsGroupTargetAssignmentMemberKey,
    22: StreamsGroupCurrentMemberAssignmentKey,
    23: StreamsGroupTopologyKey,
}

VALUE_TYPES: dict[int, type[Message]] = {
    0: LegacyOffsetCommitValue,
    1: OffsetCommitValue,
    2: GroupMetadataValue,
    3: ConsumerGroupMetadataValue,
    4: ConsumerGroupPartitionMetadataValue,
    5: ConsumerGroupMemberMetadataValue,
    6: ConsumerGroupTargetAssignmentMetadataValue,
    7: ConsumerGroupTargetAssignmentMemberValue,
    8: ConsumerGroupCurrentMemberAssignmentValue,
    10: ShareGroupMemberMetadataValue,
    11: ShareGroupMetadataValue,
    12: ShareGroupTargetAssignmentMetadataValue,
    13: ShareGroupTargetAssignmentMemberValue,
    14: ShareGroupCurrentMemberAssignmentValue,
    15: ShareGroupStatePartitionMetadataValue,
    16: ConsumerGroupRegularExpressionValue,
    17: StreamsGroupMetadataValue,
    19: StreamsGroupMemberMetadataValue,
    20: StreamsGroupTargetAssignmentMetadataValue,
    21: StreamsGroupTargetAssignmentMemberValue,
    22: StreamsGroupCurrentMemberAssignmentValue,
    23: StreamsGroupTopologyValue,
}
