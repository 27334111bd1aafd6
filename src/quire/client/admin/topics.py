"""Topics: list, create, delete, add partitions, and delete records at the beginning of partitions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from quire.client.admin.results import ask_controller, error
from quire.client.cluster import Cluster
from quire.client.errors import ClientError
from quire.client.metadata import Topic
from quire.client.offsets import TopicPartition
from quire.pending import gather
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.steps import Steps


@dataclass(slots=True)
class NewTopic:
    """A topic to create; -1 means the broker's default, and `assignments` names the replicas instead."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class CreatedTopic:
    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


def describe_topics(cluster: Cluster, names: Iterable[str] | None = None) -> Steps[dict[str, Topic | ApiError]]:
    """Topics with their partitions, by name; all topics if `names` is None."""
    wanted = None if names is None else list(dict.fromkeys(names))
    yield from cluster.refresh(wanted)
    known = cluster.metadata.topics
    found: dict[str, Topic | ApiError] = {}
    for name in sorted(known) if wanted is None else wanted:
        topic = known.get(name)
        if topic is None:
            found[name] = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
        elif topic.error in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            found[name] = topic
        else:
            found[name] = ApiError(topic.error, f"topic {name} cannot be described")
    return found


def create_topics(
    cluster: Cluster, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> Steps[dict[str, CreatedTopic | ApiError]]:
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics],
        timeout_ms=int(cluster.request_timeout_ms),
        validate_only=validate_only,
    )
    response = yield from ask_controller(
        cluster, request, CreateTopicsResponse, lambda answer: [topic.error_code for topic in answer.topics]
    )
    return {
        answer.name: error(answer.error_code, answer.error_message, f"topic {answer.name} was not created")
        or CreatedTopic(answer.name, answer.topic_id, answer.num_partitions, answer.replication_factor)
        for answer in response.topics
    }


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignments else topic.partitions,
        replication_factor=-1 if topic.assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in topic.assignments.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def delete_topics(cluster: Cluster, names: Iterable[str]) -> Steps[dict[str, ApiError | None]]:
    wanted = list(dict.fromkeys(names))
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in wanted],
        topic_names=wanted,
        timeout_ms=int(cluster.request_timeout_ms),
    )
    response = yield from ask_controller(
        cluster, request, DeleteTopicsResponse, lambda answer: [topic.error_code for topic in answer.responses]
    )
    return {
        answer.name or "": error(answer.error_code, answer.error_message, f"topic {answer.name} was not deleted")
        for answer in response.responses
    }


def create_partitions(
    cluster: Cluster,
    counts: Mapping[str, int],
    *,
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    validate_only: bool = False,
) -> Steps[dict[str, ApiError | None]]:
    """Adds partitions until a topic has `counts` in total; `assignments` names the replicas of the new ones."""
    chosen = assignments or {}
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=[CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in chosen[name]]
                if name in chosen
                else None,
            )
            for name, count in counts.items()
        ],
        timeout_ms=int(cluster.request_timeout_ms),
        validate_only=validate_only,
    )
    response = yield from ask_controller(
        cluster, request, CreatePartitionsResponse, lambda answer: [topic.error_code for topic in answer.results]
    )
    return {
        answer.name: error(answer.error_code, answer.error_message, f"topic {answer.name} got no new partitions")
        for answer in response.results
    }


def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int]
) -> Steps[dict[TopicPartition, int | ApiError | ClientError]]:
    """Deletes the records below an offset (-1: all records); returns the new first offset of each partition."""
    yield from cluster.refresh(sorted({topic_partition.topic for topic_partition in before}))
    results: dict[TopicPartition, int | ApiError | ClientError] = {}
    by_leader: dict[int, dict[str, list[DeleteRecordsPartition]]] = {}
    for topic_partition, offset in before.items():
        leader = cluster.metadata.leader(*topic_partition)
        if leader is None:
            results[topic_partition] = ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic_partition} does not exist or has no leader"
            )
            continue
        part = DeleteRecordsPartition(partition_index=topic_partition.partition, offset=offset)
        by_leader.setdefault(leader, {}).setdefault(topic_partition.topic, []).append(part)
    calls = [
        cluster.call(
            leader,
            DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name, partitions=parts) for name, parts in topics.items()],
                timeout_ms=int(cluster.request_timeout_ms),
            ),
        )
        for leader, topics in by_leader.items()
    ]
    for outcome in (yield gather(calls)):
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, DeleteRecordsResponse)
        for topic in outcome.topics:
            for answer in topic.partitions:
                topic_partition = TopicPartition(topic.name, answer.partition_index)
                failed = error(answer.error_code, None, f"the records of {topic_partition} were not deleted")
                results[topic_partition] = failed or answer.low_watermark
    return results
