"""Reassignments of partitions: other replicas, more or fewer of them, and what is in progress (KIP-455)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quire.client.admin.results import ask_controller, error
from quire.client.cluster import Cluster
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError
from quire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from quire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from quire.steps import Steps


@dataclass(slots=True, frozen=True)
class Reassignment:
    """One that is in progress. `replicas` has the present ones and those that are being added."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas when it is complete, the preferred leader first."""
        return tuple(each for each in self.replicas if each not in self.removing)


def reassign_partitions(
    cluster: Cluster,
    replicas: Mapping[TopicPartition, Sequence[int] | None],
    *,
    may_change_factor: bool = True,
) -> Steps[dict[TopicPartition, ApiError | None]]:
    """Begins to move each partition to these replicas, the preferred leader first; None cancels what is in progress."""
    by_topic: dict[str, ReassignableTopic] = {}
    for (topic, partition), wanted in replicas.items():
        entry = by_topic.setdefault(topic, ReassignableTopic(name=topic))
        entry.partitions.append(
            ReassignablePartition(partition_index=partition, replicas=None if wanted is None else list(wanted))
        )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=int(cluster.request_timeout_ms),
        allow_replication_factor_change=may_change_factor,
        topics=list(by_topic.values()),
    )
    response = yield from ask_controller(
        cluster, request, AlterPartitionReassignmentsResponse, lambda answer: [answer.error_code]
    )
    failed = error(response.error_code, response.error_message, "no partition was reassigned")
    if failed is not None:
        raise failed
    return {
        TopicPartition(topic.name, each.partition_index): error(
            each.error_code, each.error_message, f"{topic.name}-{each.partition_index} was not reassigned"
        )
        for topic in response.responses
        for each in topic.partitions
    }


def list_reassignments(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None = None
) -> Steps[dict[TopicPartition, Reassignment]]:
    """What is in progress in these partitions, or in all; a partition that is missing is not being reassigned."""
    by_topic: dict[str, ListPartitionReassignmentsTopics] = {}
    for topic, partition in partitions or ():
        by_topic.setdefault(topic, ListPartitionReassignmentsTopics(name=topic)).partition_indexes.append(partition)
    request = ListPartitionReassignmentsRequest(
        timeout_ms=int(cluster.request_timeout_ms),
        topics=None if partitions is None else list(by_topic.values()),
    )
    response = yield from ask_controller(
        cluster, request, ListPartitionReassignmentsResponse, lambda answer: [answer.error_code]
    )
    failed = error(response.error_code, response.error_message, "reassignments cannot be listed")
    if failed is not None:
        raise failed
    return {
        TopicPartition(topic.name, each.partition_index): Reassignment(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for topic in response.topics
        for each in topic.partitions
    }
