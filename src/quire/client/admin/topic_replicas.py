"""The replicas of a topic's partitions, with those that are eligible to lead (KIP-966)."""

from dataclasses import dataclass

from quire.client.admin.topics import describe_topics
from quire.client.cluster import ANY, Cluster
from quire.client.errors import UnsupportedError
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from quire.steps import Steps

_DESCRIBED = (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)


@dataclass(slots=True, frozen=True)
class Replicas:
    """Those of one partition. `leader` is None if it has none."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


def describe_replicas(cluster: Cluster, topic: str) -> Steps[list[Replicas]]:
    """By partition; ApiError if the topic cannot be described. A broker that is too old names no eligible replicas."""
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)])
    found: list[Replicas] = []
    while True:
        try:
            page = yield from cluster.ask(ANY, request, DescribeTopicPartitionsResponse)
        except UnsupportedError:
            return (yield from _from_metadata(cluster, topic))
        (answer,) = page.topics
        if answer.error_code:
            raise ApiError(ErrorCode(answer.error_code), f"topic {topic} cannot be described")
        for partition in answer.partitions:
            if partition.error_code not in _DESCRIBED:
                name = f"partition {partition.partition_index} of {topic}"
                raise ApiError(ErrorCode(partition.error_code), f"{name} cannot be described")
            found.append(_replicas(partition))
        if page.next_cursor is None or page.next_cursor.topic_name != topic:
            return sorted(found, key=lambda each: each.partition)
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)])
        request.cursor = _cursor(page)


def _cursor(page: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsRequestCursor:
    assert page.next_cursor is not None
    return DescribeTopicPartitionsRequestCursor(
        topic_name=page.next_cursor.topic_name, partition_index=page.next_cursor.partition_index
    )


def _replicas(found: DescribeTopicPartitionsResponsePartition) -> Replicas:
    return Replicas(
        found.partition_index,
        None if found.leader_id < 0 else found.leader_id,
        tuple(found.replica_nodes),
        tuple(found.isr_nodes),
        tuple(found.eligible_leader_replicas or ()),
        tuple(found.last_known_elr or ()),
        tuple(found.offline_replicas),
    )


def _from_metadata(cluster: Cluster, name: str) -> Steps[list[Replicas]]:
    topic = (yield from describe_topics(cluster, [name]))[name]
    if isinstance(topic, ApiError):
        raise topic
    return [
        Replicas(
            each.index,
            None if each.leader < 0 else each.leader,
            tuple(each.replicas),
            tuple(each.isr),
            offline=tuple(each.offline),
        )
        for each in topic.partitions.values()
    ]
