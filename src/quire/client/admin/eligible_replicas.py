"""The eligible leader replicas of partitions (KIP-966), which only DescribeTopicPartitions returns."""

from collections.abc import Iterable

from quire.client.cluster import ANY, Cluster
from quire.client.errors import UnsupportedError
from quire.client.offsets import TopicPartition
from quire.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from quire.steps import Steps


def eligible_replicas(
    cluster: Cluster, names: Iterable[str], *, page_size: int = 2_000
) -> Steps[dict[TopicPartition, list[int]]]:
    """Of each partition of these topics; empty if the broker is too old to return them."""
    topics = [TopicRequest(name=name) for name in sorted(set(names))]
    found: dict[TopicPartition, list[int]] = {}
    cursor: DescribeTopicPartitionsRequestCursor | None = None
    while topics:  # No name means every topic.
        request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=page_size, cursor=cursor)
        try:
            response = yield from cluster.ask(ANY, request, DescribeTopicPartitionsResponse)
        except UnsupportedError:
            return {}
        for topic in response.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name or "", partition.partition_index)
                found[key] = partition.eligible_leader_replicas or []
        following = response.next_cursor
        if following is None:
            break
        cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )
    return found
