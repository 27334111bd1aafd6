"""The records of `__share_group_state`.

A key is preceded by its API_KEY as an int16, a value by its version as an int16; a null value is a tombstone.
"""

from quire.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string, uuid


class ShareSnapshotKey(Message):
    API_KEY = 0
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    topic_id: bytes = uuid("0")
    partition: int = int32("0")


class ShareSnapshotValueStateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


class ShareSnapshotValue(Message):
    API_KEY = 0
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    snapshot_epoch: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", tag=0, tagged="0+", default=-1)
    create_timestamp: int = int64("0+")
    write_timestamp: int = int64("0+")
    state_batches: list[ShareSnapshotValueStateBatch] = array(ShareSnapshotValueStateBatch, "0+")


class ShareUpdateKey(Message):
    API_KEY = 1
    VERSIONS = (0, 0)
    FLEXIBLE = None

    group_id: str = string("0")
    topic_id: bytes = uuid("0")
    partition: int = int32("0")


class ShareUpdateValueStateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


class ShareUpdateValue(Message):
    API_KEY = 1
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    snapshot_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", tag=0, tagged="0+", default=-1)
    state_batches: list[ShareUpdateValueStateBatch] = array(ShareUpdateValueStateBatch, "0+")


KEY_TYPES: dict[int, type[Message]] = {
    0: ShareSnapshotKey,
    1: ShareUpdateKey,
}

VALUE_TYPES: dict[int, type[Message]] = {
    0: ShareSnapshotValue,
    1: ShareUpdateValue,
}
