"""A cache of the cluster's metadata: brokers, topics, topic ids, the leaders of partitions, and coordinators.

`Cluster` sends the requests and applies the responses. A response from a broker that is behind never replaces a newer
leader (leader epochs decide), so a client does not go back to a deposed leader.
"""

from dataclasses import dataclass, field

from quire.address import Address
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

NO_ID = bytes(16)
NO_LEADER = -1


@dataclass(slots=True)
class Broker:
    node_id: int
    address: Address
    rack: str | None


@dataclass(slots=True)
class Partition:
    index: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class Topic:
    name: str
    topic_id: bytes
    internal: bool
    error: ErrorCode = ErrorCode.NONE
    partitions: dict[int, Partition] = field(default_factory=dict)

    @property
    def led(self) -> list[int]:
        """The partitions that have a leader."""
        return [index for index, partition in self.partitions.items() if partition.leader != NO_LEADER]


class Metadata:
    __slots__ = ("brokers", "cluster_id", "controller_id", "coordinators", "names_by_id", "topics")

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.names_by_id: dict[bytes, str] = {}
        self.coordinators: dict[tuple[int, str], int] = {}  # (coordinator type, group or transactional id): node
        self.cluster_id: str | None = None
        self.controller_id = -1

    def apply(self, response: MetadataResponse) -> None:
        """Applies a response; topics that it does not contain stay as they are."""
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        if response.brokers:  # a node that is just starting may not know any broker yet
            self.brokers = {
                broker.node_id: Broker(broker.node_id, Address(broker.host, broker.port), broker.rack)
                for broker in response.brokers
            }
        for answer in response.topics:
            if answer.name is not None:
                self._apply_topic(answer.name, answer)

    def forget_topics(self) -> None:
        self.topics.clear()
        self.names_by_id.clear()

    def leader(self, topic: str, partition: int) -> int | None:
        """The node that leads a partition; None if no leader is known."""
        known = self.topics.get(topic)
        if known is None or partition not in known.partitions:
            return None
        leader = known.partitions[partition].leader
        return None if leader == NO_LEADER else leader

    def leader_epoch(self, topic: str, partition: int) -> int:
        known = self.topics.get(topic)
        return -1 if known is None or partition not in known.partitions else known.partitions[partition].leader_epoch

    def new_leader(self, topic: str, partition: int, leader: int, leader_epoch: int) -> bool:
        """Applies a leader that a broker named in an error response (KIP-951); true if it is newer."""
        known = self.topics.get(topic)
        current = None if known is None else known.partitions.get(partition)
        if current is None or leader not in self.brokers or leader_epoch <= current.leader_epoch:
            return False
        current.leader, current.leader_epoch = leader, leader_epoch
        return True

    def _apply_topic(self, name: str, answer: MetadataResponseTopic) -> None:
        before = self.topics.pop(name, None)
        if before is not None and before.topic_id != answer.topic_id:
            self.names_by_id.pop(before.topic_id, None)
            before = None  # the topic was recreated, so its epochs start at 0 again
        if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return
        topic = Topic(name, answer.topic_id, answer.is_internal, ErrorCode(answer.error_code))
        for heard in sorted(answer.partitions, key=lambda partition: partition.partition_index):
            known = None if before is None else before.partitions.get(heard.partition_index)
            topic.partitions[heard.partition_index] = _newer(known, heard)
        if before is not None and not topic.partitions:
            topic.partitions = before.partitions  # the response has an error instead of the partitions
        self.topics[name] = topic
        if topic.topic_id != NO_ID:
            self.names_by_id[topic.topic_id] = name


def _newer(known: Partition | None, heard: MetadataResponsePartition) -> Partition:
    if known is not None and heard.leader_epoch < known.leader_epoch:
        return known
    return Partition(
        heard.partition_index,
        heard.leader_id,
        heard.leader_epoch,
        list(heard.replica_nodes),
        list(heard.isr_nodes),
        list(heard.offline_replicas),
        ErrorCode(heard.error_code),
    )
