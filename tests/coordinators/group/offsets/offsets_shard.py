"""A shard with committed offsets and nothing else: the test sets what its groups answer."""

from collections.abc import Mapping, Sequence

from quire.coordinators.group.group import CheckPartition, Groups, GroupType
from quire.coordinators.group.offsets.offsets import Offsets
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord, tombstone
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.group_records import (
    KEY_TYPES,
    VALUE_TYPES,
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from quire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
)
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.coordinators.sim_shard import SimShard

NEWEST = 9
"""The newest version in which topics have names."""

Partitions = Mapping[tuple[str, int], int]
"""Offsets by (topic, partition)."""


def topic_id(name: str, incarnation: int = 0) -> bytes:
    return f"{name}#{incarnation}".encode().ljust(16, b"-")


def topics(partitions: Mapping[str, int], *, incarnation: int = 0) -> ClusterImage:
    """Topics by name with their numbers of partitions."""
    image = ClusterImage()
    for name, count in partitions.items():
        topic = TopicImage(name, topic_id(name, incarnation))
        topic.partitions = {number: PartitionImage(replicas=(1,), isr=(1,), leader=1) for number in range(count)}
        image.add_topic(topic)
    return image


class ScriptedGroup:
    """A group whose answers the test sets."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.type = GroupType.CLASSIC
        self.protocol_type = ""
        self.is_empty = True
        self.members: dict[str, int] = {}
        """Generations, or epochs, by member id."""
        self.owned: dict[tuple[bytes, int], int] = {}
        """The epochs since which partitions are owned: then older ones may commit these."""
        self.subscribed: list[str] = []
        self.unused_since_ms: int | None = -1
        """-1: from the commit on."""
        self.asked: list[tuple[str, str | None, int, bool, int]] = []

    @property
    def state_name(self) -> str:
        return "Empty" if self.is_empty else "Stable"

    def join(self, member_id: str, generation: int, *subscribed: str) -> None:
        self.is_empty = False
        self.protocol_type = "consumer"
        self.members[member_id] = generation
        self.subscribed += subscribed
        self.unused_since_ms = -1

    def leave(self, now_ms: int) -> None:
        self.is_empty = True
        self.members, self.subscribed = {}, []
        self.unused_since_ms = now_ms

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool, api_version: int
    ) -> CheckPartition | None:
        self.asked.append((member_id, instance_id, generation, is_transactional, api_version))
        if self.is_empty and generation < 0:
            return None
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation == self.members[member_id]:
            return None
        if not self.owned:
            raise ApiError(ErrorCode.STALE_MEMBER_EPOCH)

        def check_partition(topic: bytes, partition: int) -> None:
            if self.owned.get((topic, partition), generation + 1) > generation:
                raise ApiError(ErrorCode.STALE_MEMBER_EPOCH)

        return check_partition

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None and self.members.get(member_id) != member_epoch:
            raise ApiError(ErrorCode.STALE_MEMBER_EPOCH)

    def check_delete(self) -> None:
        raise NotImplementedError

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def offsets_unused_since(self, commit_ms: int) -> int | None:
        return commit_ms if self.unused_since_ms == -1 else self.unused_since_ms

    def tombstones(self) -> list[StateRecord]:
        return [tombstone(GroupMetadataKey(group=self.group_id))]


class OffsetsMachine:
    record_types = RecordTypes(KEY_TYPES, VALUE_TYPES)

    def __init__(self, environment: MachineEnvironment) -> None:
        self.groups = Groups()
        self.offsets = Offsets(self.groups, environment, self._add)

    def _add(self, group_id: str) -> None:
        self.groups[group_id] = ScriptedGroup(group_id)

    def replay(self, record: StateRecord, origin: Origin) -> None:
        key, value = record.key, record.value
        if isinstance(key, GroupMetadataKey):
            assert value is None
            self.groups.pop(key.group, None)
        else:
            assert isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey)
            assert value is None or isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue)
            self.offsets.replay(key, value, origin)

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self.offsets.replay_end(producer_id, committed=committed)

    def loaded(self, now_ms: int) -> None:
        self.offsets.loaded()

    def unloaded(self, reason: ErrorCode) -> None:
        pass

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        self.offsets.metadata_changed(topics)


class OffsetsShard(SimShard[OffsetsMachine]):
    """Requests and responses in terms of topics, partitions and offsets; errors are returned unchanged."""

    def __init__(self, partitions: Mapping[str, int], settings: Mapping[str, str] | None = None) -> None:
        super().__init__(OffsetsMachine, settings, image=topics(partitions))

    def group(self, group_id: str) -> ScriptedGroup:
        """Creates the group if it does not exist."""
        group = self.machine.groups.setdefault(group_id, ScriptedGroup(group_id))
        assert isinstance(group, ScriptedGroup)
        return group

    def commit_request(
        self, request: OffsetCommitRequest, version: int = NEWEST
    ) -> Pending[OffsetCommitResponse | ApiError]:
        return self.run(lambda now_ms: self.machine.offsets.commit(request, caller(version), now_ms))

    def commit_offsets(
        self,
        group_id: str,
        offsets: Partitions,
        *,
        member: str = "",
        generation: int = -1,
        version: int = NEWEST,
        metadata: str | None = "",
        leader_epoch: int = -1,
        retention_ms: int = -1,
    ) -> dict[tuple[str, int], ErrorCode] | ErrorCode:
        by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_metadata=metadata,
                    committed_leader_epoch=leader_epoch,
                )
            )
        request = OffsetCommitRequest(
            group_id=group_id,
            member_id=member,
            generation_id_or_member_epoch=generation,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=name, partitions=each) for name, each in by_topic.items()],
        )
        return errors_of(self.commit_request(request, version).value)

    def commit_in_transaction(
        self,
        group_id: str,
        offsets: Partitions,
        *,
        producer_id: int,
        producer_epoch: int = 0,
        member: str = "",
        generation: int = -1,
        metadata: str | None = "",
    ) -> dict[tuple[str, int], ErrorCode] | ErrorCode:
        by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=metadata
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=group_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            member_id=member,
            generation_id=generation,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=each) for name, each in by_topic.items()],
        )
        answer = self.run(lambda now_ms: self.machine.offsets.commit_in_transaction(request, caller(5), now_ms))
        return errors_of(answer.value)

    def fetch_group(
        self, request: OffsetFetchRequestGroup, version: int = NEWEST, *, require_stable: bool = False
    ) -> OffsetFetchResponseGroup | ErrorCode:
        answer = self.run(
            lambda now_ms: self.machine.offsets.fetch(request, caller(version), require_stable=require_stable)
        ).value
        return answer.code if isinstance(answer, ApiError) else answer

    def partition(
        self, group_id: str, topic: str, partition: int, *, require_stable: bool = False
    ) -> OffsetFetchResponsePartitions:
        """The result of OffsetFetch for one partition."""
        asked = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        answer = self.fetch_group(
            OffsetFetchRequestGroup(group_id=group_id, topics=asked), require_stable=require_stable
        )
        assert isinstance(answer, OffsetFetchResponseGroup)
        return answer.topics[0].partitions[0]

    def offset(self, group_id: str, topic: str, partition: int) -> int:
        return self.partition(group_id, topic, partition).committed_offset

    def all_offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        answer = self.fetch_group(OffsetFetchRequestGroup(group_id=group_id, topics=None))
        assert isinstance(answer, OffsetFetchResponseGroup)
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in answer.topics
            for each in topic.partitions
        }

    def delete_offsets(
        self, group_id: str, partitions: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], ErrorCode] | ErrorCode:
        by_topic: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition_index=partition))
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[OffsetDeleteRequestTopic(name=name, partitions=each) for name, each in by_topic.items()],
        )
        return errors_of(self.run(lambda now_ms: self.machine.offsets.delete(request)).value)


def caller(version: int) -> Caller:
    return Caller("client", "/127.0.0.1", version)


def errors_of(
    answer: OffsetCommitResponse | TxnOffsetCommitResponse | OffsetDeleteResponse | ApiError,
) -> dict[tuple[str, int], ErrorCode] | ErrorCode:
    if isinstance(answer, ApiError):
        return answer.code
    errors: dict[tuple[str, int], ErrorCode] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            errors[topic.name, each.partition_index] = ErrorCode(each.error_code)
    return errors


def ok(*partitions: tuple[str, int]) -> dict[tuple[str, int], ErrorCode]:
    return dict.fromkeys(partitions, ErrorCode.NONE)
