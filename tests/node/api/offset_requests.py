"""Commits and fetches of offsets that a test sends to a simulated node, by topic name."""

from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from tests.node.conftest import SimulatedNode

GROUP = "readers"


def commit_request(offset: int, *topics: str) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(committed_offset=offset, committed_metadata="")]
    return OffsetCommitRequest(
        group_id=GROUP, topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions) for topic in topics]
    )


def commit(node: SimulatedNode, offset: int, *topics: str) -> dict[str, int]:
    """The error by topic."""
    answer = node.call(commit_request(offset, *topics), 9, OffsetCommitResponse)
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def fetch(node: SimulatedNode, *topics: str, group: str = GROUP) -> OffsetFetchResponseGroup:
    """All committed offsets of the group if no topic is named."""
    wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0]) for topic in topics]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted or None)])
    (answer,) = node.call(request, 9, OffsetFetchResponse).groups
    return answer


def offsets(group: OffsetFetchResponseGroup) -> dict[str, tuple[int, int]]:
    """Offset and error by topic."""
    return {
        topic.name: (topic.partitions[0].committed_offset, topic.partitions[0].error_code) for topic in group.topics
    }
