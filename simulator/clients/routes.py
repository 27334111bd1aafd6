"""Where a client sends its requests: what it has learned from Metadata and FindCoordinator, until an error refutes it.

A target is a partition (its leader), a group or transactional id (its coordinator), a node by name, or ANYWHERE.
"""

from typing import NamedTuple, TypeAlias

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.metadata import MetadataResponse
from simulator.ledger import PartitionBook

GROUP = 0
TRANSACTION = 1

MISROUTED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)
"""In a cluster a client may always get these, from a node that knows less than another; it retries elsewhere."""


class Anywhere:
    """Any node can answer."""


class Coordinator(NamedTuple):
    key_type: int
    key: str


Target: TypeAlias = PartitionBook | Coordinator | str | Anywhere

ANYWHERE = Anywhere()


def group(name: str) -> Coordinator:
    return Coordinator(GROUP, name)


def transaction(transactional_id: str) -> Coordinator:
    return Coordinator(TRANSACTION, transactional_id)


class Routes:
    def __init__(self) -> None:
        self._leaders: dict[tuple[bytes, int], str] = {}
        self._coordinators: dict[Coordinator, str] = {}

    def host_of(self, target: PartitionBook | Coordinator) -> str | None:
        """None if it must be asked for."""
        if isinstance(target, Coordinator):
            return self._coordinators.get(target)
        return self._leaders.get((target.topic.topic_id, target.index))

    def learn_leaders(self, answer: MetadataResponse) -> None:
        hosts = {broker.node_id: broker.host for broker in answer.brokers}
        self._leaders = {
            (bytes(topic.topic_id), partition.partition_index): hosts[partition.leader_id]
            for topic in answer.topics
            for partition in topic.partitions
            if partition.leader_id in hosts
        }

    def learn_coordinator(self, target: Coordinator, host: str) -> None:
        self._coordinators[target] = host

    def forget(self) -> None:
        self._leaders.clear()
        self._coordinators.clear()
