"""Three simulated nodes with a topic of one partition with three replicas, and a client's requests to its leader."""

from collections.abc import Sequence
from functools import partial

from quire.node.node import Node
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from quire.protocol.records import Record, build_batch, iterate_records
from quire.replication.leader_role import LeaderRole
from quire.replication.partition import Partition
from quire.storage.scanning.range_check import read_checked
from tests.node.sim_nodes import BOTH, SimNodes

TOPIC = "t"


class Replicated(SimNodes):
    def __init__(
        self,
        roles: Sequence[str] = (BOTH, BOTH, BOTH),
        *,
        min_isr: int = 2,
        seed: int = 1,
        topic_settings: dict[str, str] | None = None,
        **settings: str,
    ) -> None:
        """Nodes 1 to 3 must be brokers."""
        super().__init__(roles, seed=seed, **settings)
        self.start()
        self.create(TOPIC, [1, 2, 3], {"min.insync.replicas": str(min_isr), **(topic_settings or {})})

    def create(
        self, name: str, replicas: list[int], configs: dict[str, str] | None = None, partitions: int = 1
    ) -> None:
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas) for index in range(partitions)
        ]
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        response = self.ask(1, CreateTopicsRequest(topics=[topic], timeout_ms=20_000), CreateTopicsResponse)
        assert response.topics[0].error_code == ErrorCode.NONE, response

    # --- State of the nodes

    def partition(self, node_id: int, topic: str = TOPIC) -> Partition:
        found = {partition.topic: partition for partition in self.nodes[node_id].partitions if partition.index == 0}
        return found[topic]

    def leader(self, topic: str = TOPIC) -> LeaderRole:
        """The leader with the highest epoch, as the nodes themselves see it."""
        roles = [self._role(node, topic) for node in self.nodes.values()]
        return max((role for role in roles if role is not None), key=lambda role: role.leader_epoch)

    def has_leader(self, topic: str = TOPIC) -> bool:
        return any(self._role(node, topic) for node in self.nodes.values())

    def _role(self, node: Node, topic: str) -> LeaderRole | None:
        return next((each.leader for each in node.partitions if each.topic == topic and each.index == 0), None)

    def leader_node(self, topic: str = TOPIC) -> int:
        return self.leader(topic).partition.node_id

    def isr(self, topic: str = TOPIC) -> set[int]:
        return set(self.leader(topic).followers.in_sync.committed)

    def is_whole(self, topic: str = TOPIC) -> bool:
        """Whether every running broker is in sync, and knows that everything is committed."""
        brokers = [each for each in self.nodes if "broker" in self.roles[each]]
        if not self.has_leader(topic) or self.isr(topic) != set(brokers):
            return False
        replicas = [self.partition(each, topic) for each in brokers]
        return len({offset for each in replicas for offset in (each.log.end_offset, each.high_watermark)}) == 1

    def values(self, node_id: int, topic: str = TOPIC) -> list[bytes | None]:
        return [record.value for record in iterate_records(self.content(node_id, topic))]

    def content(self, node_id: int, topic: str = TOPIC) -> bytes:
        """The bytes of a replica's log."""
        log = self.partition(node_id, topic).log
        content, offset = b"", log.start_offset
        while offset < log.end_offset:
            part = read_checked(partial(log.read, offset, 1 << 20))
            assert part is not None
            data = part.read()
            content += data
            offset = [record.offset for record in iterate_records(data)][-1] + 1
        return content

    # --- Requests

    def produce(
        self, value: bytes, *, to: int | None = None, acks: int = -1, timeout_ms: int = 5_000
    ) -> Pending[ErrorCode]:
        """The error of a produce request to the leader, or to the node `to`."""
        batch = bytes(build_batch([Record(0, self.clock.now_ms(), None, value)]))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])],
        )
        response = self.send(to or self.leader_node(), request, version=9)

        def error_of(answer: object) -> ErrorCode:
            assert isinstance(answer, ProduceResponse), answer
            return ErrorCode(answer.responses[0].partition_responses[0].error_code)

        return response.then(error_of)  # type: ignore[no-any-return]

    def written(self, *values: bytes) -> None:
        """Writes records, and waits until they are acknowledged."""
        for value in values:
            assert self.settle(self.produce(value)) == ErrorCode.NONE

    # --- The network

    def isolate(self, node_id: int, *, one_way: bool = False) -> str:
        """Cuts a node off from the other nodes; clients reach it."""
        name = f"isolated {node_id} {self.clock.monotonic_ms()}"
        pairs = [(f"node{node_id}", f"node{each}") for each in self.roles if each != node_id]
        if not one_way:
            pairs += [(target, source) for source, target in pairs]
        self.network.partition(name, pairs)
        return name

    def wait(self, duration_ms: float) -> None:
        end_ms = self.clock.monotonic_ms() + duration_ms
        self.until(lambda: self.clock.monotonic_ms() >= end_ms)
