"""How all partitions are: leaders, replicas in sync, the minimum that must be, and reassignments under way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quire.client.admin.reassignments import Reassignment, list_reassignments
from quire.client.cluster import ANY, Cluster
from quire.client.errors import UnsupportedError
from quire.client.metadata import NO_LEADER, Partition
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from quire.steps import Steps

_TOPICS_PER_REQUEST = 500
_MIN_ISR = "min.insync.replicas"
_TOPIC = 2


@dataclass(frozen=True, slots=True)
class PartitionState:
    """`leader` is None if there is none. `offline` are replicas whose broker or disk is down."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    min_insync_replicas: int = 1
    reassignment: Reassignment | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_led_by_first(self) -> bool:
        return bool(self.replicas) and self.leader == self.replicas[0]

    @property
    def out_of_sync(self) -> tuple[int, ...]:
        """Replicas outside the ISR; those that a reassignment adds are not expected in it yet."""
        adding = () if self.reassignment is None else self.reassignment.adding
        return tuple(each for each in self.replicas if each not in self.isr and each not in adding)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether acks=all is refused."""
        return len(self.isr) < min(self.min_insync_replicas, len(self.replicas))


def describe_partitions(cluster: Cluster, names: Sequence[str] | None = None) -> Steps[list[PartitionState]]:
    """Of these topics, or of all. Raises ApiError for a topic that does not exist."""
    yield from cluster.refresh(names)
    known = cluster.metadata.topics
    for name in names or ():
        if name not in known:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
    topics = sorted(known) if names is None else sorted(set(names))
    minimum = yield from _minimums(cluster, topics)
    try:
        moving = yield from list_reassignments(cluster)
    except UnsupportedError:
        moving = {}
    return [
        _state(name, each, minimum.get(name, 1), moving.get(TopicPartition(name, index)))
        for name in topics
        for index, each in sorted(known[name].partitions.items())
    ]


def _state(topic: str, found: Partition, minimum: int, reassignment: Reassignment | None) -> PartitionState:
    return PartitionState(
        topic,
        found.index,
        None if found.leader == NO_LEADER else found.leader,
        tuple(found.replicas),
        tuple(found.isr),
        tuple(found.offline),
        minimum,
        reassignment,
    )


def _minimums(cluster: Cluster, topics: Sequence[str]) -> Steps[dict[str, int]]:
    found: dict[str, int] = {}
    for start in range(0, len(topics), _TOPICS_PER_REQUEST):
        request = _asking_for_minimum(topics[start : start + _TOPICS_PER_REQUEST])
        response = yield from cluster.ask(ANY, request, DescribeConfigsResponse)
        for answer in response.results:
            for config in answer.configs:
                if config.value is not None:
                    found[answer.resource_name] = int(config.value)
    return found


def _asking_for_minimum(topics: Iterable[str]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=[_MIN_ISR])
            for name in topics
        ]
    )
