"""Single requests about committed offsets, in any version, for tests without a client."""

from collections.abc import Mapping, Sequence
from typing import Any

from quire.protocol.errors import ErrorCode
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
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from quire.testing import WireConnection
from tests.wire.raw import topic_metadata

COMMIT_OLDEST, COMMIT_NEWEST = 2, 10
FETCH_OLDEST, FETCH_NEWEST = 1, 10
TOPIC_IDS_FROM = 10
"""The version of both requests."""
MANY_GROUPS_FROM = 8

Partition = OffsetFetchResponsePartition | OffsetFetchResponsePartitions
Wanted = Mapping[str, Sequence[int]]


def commit(
    connection: WireConnection,
    group: str,
    topic: str,
    offset: int = 5,
    *,
    partition: int = 0,
    version: int = COMMIT_NEWEST - 1,
    generation_id: int = -1,
    member_id: str = "",
    instance: str | None = None,
    metadata: str | None = "",
    leader_epoch: int = -1,
) -> ErrorCode:
    """Commits one offset; without a member id, like a client outside the group."""
    offset_commit = OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=leader_epoch,
        committed_metadata=metadata,
    )
    named = OffsetCommitRequestTopic(name=topic, partitions=[offset_commit])
    if version >= TOPIC_IDS_FROM:
        named.topic_id = topic_metadata(connection, topic).topic_id
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=instance,
        topics=[named],
    )
    (answered,) = connection.call(request, version, OffsetCommitResponse).topics
    (result,) = answered.partitions
    assert result.partition_index == partition
    return ErrorCode(result.error_code)


def fetch_group(
    connection: WireConnection,
    group: str,
    wanted: Wanted | None,
    *,
    version: int = MANY_GROUPS_FROM + 1,
    member_id: str | None = None,
    member_epoch: int = -1,
    require_stable: bool = False,
) -> OffsetFetchResponseGroup:
    """From version 8 on, one group of many; `wanted` is None for everything."""
    asked = None if wanted is None else [_asked(connection, *each, version) for each in wanted.items()]
    named = OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=member_epoch, topics=asked)
    request = OffsetFetchRequest(groups=[named], require_stable=require_stable)
    (answer,) = connection.call(request, version, OffsetFetchResponse).groups
    assert answer.group_id == group
    return answer


def _asked(connection: WireConnection, topic: str, partitions: Sequence[int], version: int) -> OffsetFetchRequestTopics:
    asked = OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))
    if version >= TOPIC_IDS_FROM:
        asked.topic_id = topic_metadata(connection, topic).topic_id
    return asked


def fetch_old(
    connection: WireConnection, group: str, wanted: Wanted | None, *, version: int = 7, require_stable: bool = False
) -> OffsetFetchResponse:
    """Until version 7: one group in a request."""
    asked = (
        None
        if wanted is None
        else [OffsetFetchRequestTopic(name=name, partition_indexes=list(found)) for name, found in wanted.items()]
    )
    request = OffsetFetchRequest(group_id=group, topics=asked, require_stable=require_stable)
    return connection.call(request, version, OffsetFetchResponse)


def committed(
    connection: WireConnection, group: str, topic: str, partition: int = 0, *, version: int = 7, **more: Any
) -> Partition:
    """The committed offset of one partition, in any version."""
    if version >= MANY_GROUPS_FROM:
        answer = fetch_group(connection, group, {topic: [partition]}, version=version, **more)
        assert answer.error_code == ErrorCode.NONE
        return answer.topics[0].partitions[0]
    old = fetch_old(connection, group, {topic: [partition]}, version=version, **more)
    assert old.error_code == ErrorCode.NONE
    return old.topics[0].partitions[0]


def delete_offsets(
    connection: WireConnection, group: str, unwanted: Wanted
) -> tuple[ErrorCode, dict[tuple[str, int], ErrorCode]]:
    """The error of the whole request, and those of the partitions."""
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in partitions]
        )
        for name, partitions in unwanted.items()
    ]
    answer = connection.call(OffsetDeleteRequest(group_id=group, topics=topics), 0, OffsetDeleteResponse)
    return ErrorCode(answer.error_code), {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }
