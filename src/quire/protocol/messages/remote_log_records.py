"""The records of `__remote_log_metadata`: which segments tiered storage holds."""

from quire.protocol.schema import Message, Struct, array, binary, boolean, int8, int32, int64, nested, string, uuid


class RemoteLogSegmentMetadataRecordTopicIdPartitionEntry(Struct):
    name: str = string("0+")
    id: bytes = uuid("0+")
    partition: int = int32("0+")


class RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry(Struct):
    topic_id_partition: RemoteLogSegmentMetadataRecordTopicIdPartitionEntry = nested(
        RemoteLogSegmentMetadataRecordTopicIdPartitionEntry, "0+"
    )
    id: bytes = uuid("0+")


class RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry(Struct):
    leader_epoch: int = int32("0+")
    offset: int = int64("0+")


class RemoteLogSegmentMetadataRecord(Message):
    API_KEY = 0
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    remote_log_segment_id: RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry = nested(
        RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry, "0+"
    )
    start_offset: int = int64("0+")
    end_offset: int = int64("0+")
    broker_id: int = int32("0+")
    max_timestamp_ms: int = int64("0+")
    event_timestamp_ms: int = int64("0+")
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry] = array(
        RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry, "0+"
    )
    segment_size_in_bytes: int = int32("0+")
    custom_metadata: bytes | None = binary("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")
    txn_index_empty: bool = boolean("0+", tag=0, tagged="0+")


class RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry(Struct):
    name: str = string("0+")
    id: bytes = uuid("0+")
    partition: int = int32("0+")


class RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry(Struct):
    topic_id_partition: RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry = nested(
        RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry, "0+"
    )
    id: bytes = uuid("0+")


class RemoteLogSegmentMetadataUpdateRecord(Message):
    API_KEY = 1
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry = nested(
        RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry, "0+"
    )
    broker_id: int = int32("0+")
    event_timestamp_ms: int = int64("0+")
    custom_metadata: bytes | None = binary("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")


class RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry(Struct):
    name: str = string("0+")
    id: bytes = uuid("0+")
    partition: int = int32("0+")


class RemotePartitionDeleteMetadataRecord(Message):
    API_KEY = 2
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topic_id_partition: RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry = nested(
        RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry, "0+"
    )
    broker_id: int = int32("0+")
    event_timestamp_ms: int = int64("0+")
    remote_partition_delete_state: int = int8("0+")


class RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry(Struct):
    leader_epoch: int = int32("0+")
    offset: int = int64("0+")


class RemoteLogSegmentMetadataSnapshotRecord(Message):
    API_KEY = 3
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    segment_id: bytes = uuid("0+")
    start_offset: int = int64("0+")
    end_offset: int = int64("0+")
    broker_id: int = int32("0+")
    max_timestamp_ms: int = int64("0+")
    event_timestamp_ms: int = int64("0+")
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry] = array(
        RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry, "0+"
    )
    segment_size_in_bytes: int = int32("0+")
    custom_metadata: bytes | None = binary("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")
    txn_index_empty: bool = boolean("0+", tag=0, tagged="0+")


RECORD_TYPES: dict[int, type[Message]] = {
    0: RemoteLogSegmentMetadataRecord,
    1: RemoteLogSegmentMetadataUpdateRecord,
    2: RemotePartitionDeleteMetadataRecord,
    3: RemoteLogSegmentMetadataSnapshotRecord,
}
