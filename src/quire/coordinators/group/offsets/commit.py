"""OffsetCommit and TxnOffsetCommit: a record or an error for each partition.

A partition that does not exist and metadata that is too large are errors of that partition only. The group decides
whether the member may commit at all; if not, the whole request fails. The first offset creates a group that does not
exist, unless the request claims to be from a member.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from quire.coordinators.group.group import CheckPartition, Groups
from quire.coordinators.group.offsets.committed import NO_TIMESTAMP, offset_record
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult, WrittenBy
from quire.metadata.image import TopicImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

TOPIC_IDS_SINCE = 10
GROUP_ID_NOT_FOUND_SINCE = 9

_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_INT64_MAX = 2**63 - 1

RequestPartition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


@dataclass(slots=True)
class _Topic:
    """A topic of a request. `errors` has an error code for each partition, in order."""

    image: TopicImage | None
    partitions: Sequence[RequestPartition]
    errors: list[ErrorCode]

    @property
    def is_unknown(self) -> bool:
        """No partition exists, so the group need not be checked."""
        return all(error in _UNKNOWN for error in self.errors)


class CommitRequests:
    __slots__ = ("_environment", "_groups")

    def __init__(self, groups: Groups, environment: MachineEnvironment) -> None:
        self._groups = groups
        self._environment = environment

    def commit(
        self, request: OffsetCommitRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[OffsetCommitResponse]:
        image = self._environment.image()
        by_id = caller.api_version >= TOPIC_IDS_SINCE
        topics = [
            self._check_topic(image.topic_by_id(each.topic_id), each.partitions, ErrorCode.UNKNOWN_TOPIC_ID)
            if by_id
            else self._check_topic(image.topic(each.name), each.partitions)
            for each in request.topics
        ]
        records: list[StateRecord] = []
        if not all(topic.is_unknown for topic in topics):
            check = self._check(request, caller)
            expire_ms = NO_TIMESTAMP
            if request.retention_time_ms != -1:
                expire_ms = min(now_ms + request.retention_time_ms, _INT64_MAX)
            records = _records(request.group_id, topics, check, now_ms, expire_ms)
        responses = [
            OffsetCommitResponseTopic(
                name=requested.name,
                topic_id=requested.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each, error in zip(topic.partitions, topic.errors, strict=True)
                ],
            )
            for requested, topic in zip(request.topics, topics, strict=True)
        ]
        return CoordinatorResult(OffsetCommitResponse(topics=responses), records)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[TxnOffsetCommitResponse]:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "offsets in a transaction need a group: give a group id")
        image = self._environment.image()
        topics = [self._check_topic(image.topic(each.name), each.partitions) for each in request.topics]
        records: list[StateRecord] = []
        if not all(topic.is_unknown for topic in topics):
            try:
                check = self._check_in_transaction(request, caller)
                records = _records(request.group_id, topics, check, now_ms, NO_TIMESTAMP)
            except ApiError as error:
                if error.code is not ErrorCode.STALE_MEMBER_EPOCH:
                    raise
                # Producers do not know STALE_MEMBER_EPOCH.
                raise ApiError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        responses = [
            TxnOffsetCommitResponseTopic(
                name=requested.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each, error in zip(topic.partitions, topic.errors, strict=True)
                ],
            )
            for requested, topic in zip(request.topics, topics, strict=True)
        ]
        written_by = WrittenBy(request.producer_id, request.producer_epoch) if records else None
        return CoordinatorResult(TxnOffsetCommitResponse(topics=responses), records, transaction=written_by)

    def _check_topic(
        self,
        topic: TopicImage | None,
        partitions: Sequence[RequestPartition],
        unknown_topic: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ) -> _Topic:
        if topic is None:
            return _Topic(None, partitions, [unknown_topic] * len(partitions))
        # Kafka counts characters, in spite of the name of the setting.
        max_length = self._environment.config.get_int("offset.metadata.max.bytes")
        errors = []
        for partition in partitions:
            if partition.partition_index not in topic.partitions:
                errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif len(partition.committed_metadata or "") > max_length:
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                errors.append(ErrorCode.NONE)
        return _Topic(topic, partitions, errors)

    def _check(self, request: OffsetCommitRequest, caller: Caller) -> CheckPartition | None:
        group = self._groups.get(request.group_id)
        generation = request.generation_id_or_member_epoch
        if group is None:
            if generation < 0:
                return None
            code = ErrorCode.ILLEGAL_GENERATION
            if caller.api_version >= GROUP_ID_NOT_FOUND_SINCE:
                code = ErrorCode.GROUP_ID_NOT_FOUND
            raise _no_such_group(code, request.group_id)
        return group.check_offset_commit(
            request.member_id,
            request.group_instance_id,
            generation,
            is_transactional=False,
            api_version=caller.api_version,
        )

    def _check_in_transaction(self, request: TxnOffsetCommitRequest, caller: Caller) -> CheckPartition | None:
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation_id < 0:
                return None
            raise _no_such_group(ErrorCode.ILLEGAL_GENERATION, request.group_id)
        return group.check_offset_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            is_transactional=True,
            api_version=caller.api_version,
        )


def _records(
    group_id: str, topics: list[_Topic], check: CheckPartition | None, now_ms: int, expire_ms: int
) -> list[StateRecord]:
    records = []
    for topic in topics:
        for partition, error in zip(topic.partitions, topic.errors, strict=True):
            if error is not ErrorCode.NONE:
                continue
            assert topic.image is not None
            if check is not None:
                check(topic.image.topic_id, partition.partition_index)
            records.append(
                offset_record(
                    group_id,
                    topic.image.name,
                    partition.partition_index,
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata or "",
                    commit_timestamp_ms=now_ms,
                    expire_timestamp_ms=expire_ms,
                    topic_id=topic.image.topic_id,
                )
            )
    return records


def _no_such_group(code: ErrorCode, group_id: str) -> ApiError:
    return ApiError(code, f"there is no group {group_id}: join it again, or commit without a generation")
