"""The committed offsets of a shard, and the pending ones of open transactions, replayed from its records."""

from collections.abc import Iterable, Iterator

from quire.coordinators.group.offsets.committed import NO_TIMESTAMP, NO_TOPIC_ID, CommittedOffset
from quire.coordinators.group.offsets.partition_table import PartitionTable
from quire.coordinators.runtime.record import NO_PRODUCER_ID, Origin
from quire.protocol.messages.group_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

PartitionOf = tuple[str, str, int]
"""(group id, topic, partition)"""


class OffsetStore:
    __slots__ = ("_pending", "_pending_of_producer", "_topic_ids", "committed")

    def __init__(self) -> None:
        self.committed: PartitionTable[CommittedOffset] = PartitionTable()
        self._pending: PartitionTable[dict[int, CommittedOffset]] = PartitionTable()
        """By producer id, because a producer has at most one open transaction."""
        self._pending_of_producer: dict[int, dict[PartitionOf, None]] = {}
        self._topic_ids: dict[bytes, bytes] = {}
        """One bytes object for each topic id."""

    # --- Changes

    def replay(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        origin: Origin,
    ) -> None:
        group_id, topic, partition = key.group, key.topic, key.partition
        if value is None:
            self.committed.pop(group_id, topic, partition)
            self._drop_pending(group_id, topic, partition)
            return
        committed = self._committed(value, origin.offset)
        if origin.producer_id == NO_PRODUCER_ID:
            self.committed.put(group_id, topic, partition, committed)
        else:
            self._add_pending(origin.producer_id, (group_id, topic, partition), committed)

    def replay_end(self, producer_id: int, *, committed: bool) -> None:
        """If an offset was committed in a transaction and by another commit, the one that is later in the log counts,
        even if the other one took effect first: compaction keeps the later one, too."""
        for group_id, topic, partition in self._pending_of_producer.pop(producer_id, ()):
            of_producers = self._pending.get(group_id, topic, partition)
            assert of_producers is not None, "a transaction has a pending offset that no partition knows of"
            offset = of_producers.pop(producer_id)
            if not of_producers:
                self._pending.pop(group_id, topic, partition)
            if committed:
                before = self.committed.get(group_id, topic, partition)
                if before is None or before.log_offset < offset.log_offset:
                    self.committed.put(group_id, topic, partition, offset)

    def forget_topic_id(self, topic_id: bytes) -> None:
        """No more offsets of this topic are expected."""
        self._topic_ids.pop(topic_id, None)

    def _committed(self, value: OffsetCommitValue | LegacyOffsetCommitValue, log_offset: int) -> CommittedOffset:
        if isinstance(value, OffsetCommitValue):
            return CommittedOffset(
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
                self._topic_ids.setdefault(value.topic_id, value.topic_id),
                log_offset,
            )
        return CommittedOffset(
            value.offset, -1, value.metadata, value.commit_timestamp, NO_TIMESTAMP, NO_TOPIC_ID, log_offset
        )

    def _add_pending(self, producer_id: int, partition: PartitionOf, committed: CommittedOffset) -> None:
        of_producers = self._pending.get(*partition)
        if of_producers is None:
            of_producers = {}
            self._pending.put(*partition, of_producers)
        of_producers[producer_id] = committed
        self._pending_of_producer.setdefault(producer_id, {})[partition] = None

    def _drop_pending(self, group_id: str, topic: str, partition: int) -> None:
        for producer_id in self._pending.pop(group_id, topic, partition) or ():
            partitions = self._pending_of_producer[producer_id]
            del partitions[group_id, topic, partition]
            if not partitions:
                del self._pending_of_producer[producer_id]

    # --- Queries

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may change this offset."""
        return self._pending.get(group_id, topic, partition) is not None

    def has_pending(self, group_id: str) -> bool:
        return bool(self._pending.topics_of(group_id))

    def has_pending_of(self, producer_id: int) -> bool:
        return producer_id in self._pending_of_producer

    def is_known(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether there is an offset, committed or pending, that a tombstone would delete."""
        return self.committed.get(group_id, topic, partition) is not None or self.is_pending(group_id, topic, partition)

    def group_ids(self) -> Iterable[str]:
        """The groups with offsets, committed or pending."""
        return dict.fromkeys([*self.committed.group_ids(), *self._pending.group_ids()])

    def partitions_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        """All partitions with an offset, committed or pending."""
        committed = self.committed.topics_of(group_id)
        for topic, partitions in committed.items():
            for partition in partitions:
                yield topic, partition
        for topic, pending in self._pending.topics_of(group_id).items():
            for partition in pending:
                if partition not in committed.get(topic, ()):
                    yield topic, partition

    def partitions_of_topic(self, group_id: str, topic: str) -> Iterable[int]:
        committed = self.committed.topics_of(group_id).get(topic, {})
        return dict.fromkeys([*committed, *self._pending.topics_of(group_id).get(topic, {})])

    def topic_ids_of(self, group_id: str, topic: str, partition: int) -> list[bytes]:
        """The topic ids of the committed and pending offsets."""
        committed = self.committed.get(group_id, topic, partition)
        pending = self._pending.get(group_id, topic, partition) or {}
        return [*([] if committed is None else [committed.topic_id]), *(each.topic_id for each in pending.values())]
