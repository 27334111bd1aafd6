"""One committed offset, in memory and as a record of `__consumer_offsets`."""

from quire.coordinators.runtime.record import StateRecord, tombstone
from quire.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue

NO_TIMESTAMP = -1
NO_TOPIC_ID = bytes(16)
"""Of offsets that older versions wrote. They belong to any topic with the name."""

_VERSION = 4
_VERSION_WITH_EXPIRY = 1
"""The only version with an expiration time. It has no leader epoch and no topic id."""


class CommittedOffset:
    """Small, because there may be a hundred thousand of them."""

    __slots__ = (
        "commit_timestamp_ms",
        "expire_timestamp_ms",
        "leader_epoch",
        "log_offset",
        "metadata",
        "offset",
        "topic_id",
    )

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_timestamp_ms: int,
        expire_timestamp_ms: int,
        topic_id: bytes,
        log_offset: int,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp_ms = commit_timestamp_ms
        self.expire_timestamp_ms = expire_timestamp_ms
        """NO_TIMESTAMP unless the client set one, which only old clients can."""
        self.topic_id = topic_id
        self.log_offset = log_offset
        """The offset of its record. Of two commits the one with the higher offset counts."""


def offset_record(
    group_id: str,
    topic: str,
    partition: int,
    *,
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int,
    topic_id: bytes,
) -> StateRecord:
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp_ms,
        expire_timestamp=expire_timestamp_ms,
        topic_id=topic_id,
    )
    version = _VERSION if expire_timestamp_ms == NO_TIMESTAMP else _VERSION_WITH_EXPIRY
    return StateRecord(_key(group_id, topic, partition), value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> StateRecord:
    return tombstone(_key(group_id, topic, partition))


def _key(group_id: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition)
