"""The committed offsets of a group: fetching, committing and deleting them.

While a group has members, only they may commit: the coordinator refuses others that set or delete offsets. Readers that
store their position in a group use `fetch_offsets` and `commit_offsets`, which raise errors. The admin commands use
`committed_offsets` and `set_offsets`, which return the results of many groups and partitions.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.coordinators import ASK_AGAIN, CoordinatorType, ask_coordinator, ask_coordinators
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
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
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from quire.steps import Steps, sleep

# By name, because offsets outlive their topics and then have no id: version 10 and later know ids alone.
FETCH_BY_NAME = (8, 9)
COMMIT_BY_NAME = (2, 9)


class OffsetAndMetadata(NamedTuple):
    """The next offset to be read, and a text that the committer may add."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Offsets = dict[TopicPartition, OffsetAndMetadata]


class Committer(NamedTuple):
    """The member that commits: its id and epoch."""

    member_id: str
    epoch: int


OUTSIDER = Committer("", -1)


def fetch_offsets(
    cluster: Cluster,
    group_id: str,
    topic_partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = True,
) -> Steps[Offsets]:
    """The committed offsets of a group for these partitions (None: for all); partitions without one are left out.

    A reader that continues from there must not miss the offsets of a transaction that is being committed. So this waits
    for the transaction until the cluster's request time-out is over, unless `require_stable` is off.
    """
    wanted = None if topic_partitions is None else list(topic_partitions)
    backoff = Backoff(cluster.random)
    deadline_ms = cluster.clock.monotonic_ms() + cluster.request_timeout_ms
    while True:
        found = yield from committed_offsets(cluster, [group_id], wanted, require_stable=require_stable)
        offsets = found[group_id]
        if not isinstance(offsets, ApiError):
            return offsets
        unsettled = offsets.code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        if not unsettled or cluster.clock.monotonic_ms() > deadline_ms:
            raise offsets
        yield from sleep(cluster.clock, backoff.next_ms())


def commit_offsets(cluster: Cluster, group_id: str, offsets: Offsets, member: Committer = OUTSIDER) -> Steps[None]:
    """Commits offsets as a member, or for a group without members; raises the first error."""
    results = yield from set_offsets(cluster, group_id, offsets, member)
    for failed in results.values():
        if failed is not None:
            raise failed


def committed_offsets(
    cluster: Cluster,
    group_ids: Iterable[str],
    topic_partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> Steps[dict[str, Offsets | ApiError]]:
    """The committed offsets of each group, for these partitions or all; empty for a group that does not exist.

    With `require_stable` the result is an error while a transaction that commits offsets is open.
    """

    topics = None if topic_partitions is None else _by_topic(topic_partitions)

    def read(response: OffsetFetchResponse) -> Mapping[str, Offsets | ApiError]:
        return {answer.group_id: _offsets(answer) for answer in response.groups}

    return (
        yield from ask_coordinators(
            cluster,
            CoordinatorType.GROUP,
            list(group_ids),
            lambda names: OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=name, topics=topics) for name in names],
                require_stable=require_stable,
            ),
            OffsetFetchResponse,
            read,
            versions=FETCH_BY_NAME,
        )
    )


def _by_topic(topic_partitions: Iterable[TopicPartition]) -> list[OffsetFetchRequestTopics]:
    topics: dict[str, list[int]] = {}
    for topic_partition in topic_partitions:
        topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    return [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in topics.items()]


def _offsets(answer: OffsetFetchResponseGroup) -> Offsets | ApiError:
    codes = [answer.error_code, *(part.error_code for topic in answer.topics for part in topic.partitions)]
    failed = _error(next(filter(None, codes), 0), f"the offsets of group {answer.group_id} cannot be fetched")
    return failed or {
        TopicPartition(topic.name, part.partition_index): OffsetAndMetadata(
            part.committed_offset, part.metadata or "", part.committed_leader_epoch
        )
        for topic in answer.topics
        for part in topic.partitions
        if part.committed_offset >= 0
    }


def set_offsets(
    cluster: Cluster, group_id: str, offsets: Offsets, member: Committer = OUTSIDER
) -> Steps[dict[TopicPartition, ApiError | None]]:
    """Sets offsets as a member, or for a group without members, which is created if it does not exist."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for topic_partition, (offset, metadata, leader_epoch) in offsets.items():
        by_topic.setdefault(topic_partition.topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=topic_partition.partition,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id=member.member_id,
        generation_id_or_member_epoch=member.epoch,
        topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in by_topic.items()],
    )
    response = yield from ask_coordinator(
        cluster,
        CoordinatorType.GROUP,
        group_id,
        request,
        OffsetCommitResponse,
        lambda answer: _retriable_error(part.error_code for topic in answer.topics for part in topic.partitions),
        versions=COMMIT_BY_NAME,
    )
    refusal = _refusal if member == OUTSIDER else _refusal_of_a_member
    return {
        TopicPartition(topic.name, part.partition_index): refusal(
            part.error_code, group_id, f"the offset of {topic.name}-{part.partition_index} was not set"
        )
        for topic in response.topics
        for part in topic.partitions
    }


def delete_offsets(
    cluster: Cluster, group_id: str, topic_partitions: Iterable[TopicPartition]
) -> Steps[dict[TopicPartition, ApiError | None]]:
    """Deletes offsets of topics that no member of the group is subscribed to."""
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic_partition in topic_partitions:
        by_topic.setdefault(topic_partition.topic, []).append(
            OffsetDeleteRequestPartition(partition_index=topic_partition.partition)
        )
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[OffsetDeleteRequestTopic(name=name, partitions=parts) for name, parts in by_topic.items()],
    )
    response = yield from ask_coordinator(
        cluster,
        CoordinatorType.GROUP,
        group_id,
        request,
        OffsetDeleteResponse,
        lambda answer: _retriable_error([answer.error_code]),
    )
    failed = _refusal(response.error_code, group_id, f"no offset of group {group_id} was deleted")
    if failed is not None:
        raise failed
    return {
        TopicPartition(topic.name, part.partition_index): _refusal(
            part.error_code, group_id, f"the offset of {topic.name}-{part.partition_index} was not deleted"
        )
        for topic in response.topics
        for part in topic.partitions
    }


def _retriable_error(codes: Iterable[int]) -> ErrorCode:
    return next((ErrorCode(code) for code in codes if code in ASK_AGAIN), ErrorCode.NONE)


def _refusal(code: int, group_id: str, otherwise: str) -> ApiError | None:
    if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH):
        # What a coordinator returns to a committer that is not a member while there are members.
        return ApiError(ErrorCode.NON_EMPTY_GROUP, f"{otherwise}: group {group_id} has members")
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} does not exist")
    if code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        return ApiError(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, f"{otherwise}: members of {group_id} read the topic")
    return _error(code, otherwise)


def _refusal_of_a_member(code: int, group_id: str, otherwise: str) -> ApiError | None:
    return _error(code, f"{otherwise} in group {group_id}")


def _error(code: int, sentence: str) -> ApiError | None:
    return ApiError(ErrorCode(code), sentence) if code else None
