"""Three simulated nodes, with a topic that moves from node 1 to node 2 under throttles."""

from quire.node.replicas.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from quire.protocol.records import Record, build_batch
from quire.replication.partition import Partition
from tests.node.replicas.replicated import Replicated

BIG = "big"
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
FROM, TO = 1, 2
LEADER, FOLLOWER = (LEADER_RATE, LEADER_REPLICAS), (FOLLOWER_RATE, FOLLOWER_REPLICAS)


class Throttled(Replicated):
    def __init__(
        self,
        *,
        partitions: int = 1,
        batches: int = 60,
        batch_bytes: int = 10_000,
        replicas: int = 1,
        lag_ms: int = 30_000,
        fetch_wait_ms: int = 500,
    ) -> None:
        """`batches` of each partition of the topic BIG are on node 1 alone."""
        super().__init__(replica_lag_time_max_ms=str(lag_ms), replica_fetch_wait_max_ms=str(fetch_wait_ms))
        self.partitions = partitions
        self.batch_bytes = batch_bytes
        self.create(BIG, list(range(1, replicas + 1)), partitions=partitions)
        for index in range(partitions):
            for _ in range(batches):
                self.append(index)

    def append(self, index: int = 0, acks: int = 1) -> None:
        batch = bytes(build_batch([Record(0, self.clock.now_ms(), None, b"x" * self.batch_bytes)]))
        data = PartitionProduceData(index=index, records=batch)
        topic = TopicProduceData(name=BIG, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[topic])
        answer = self.ask(FROM, request, ProduceResponse, version=9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    def alter(self, type_: int, resource: str, values: dict[str, str | None]) -> ErrorCode:
        configs = [
            AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
            for name, value in values.items()
        ]
        named = AlterConfigsResource(resource_type=type_, resource_name=resource, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[named])
        return ErrorCode(self.ask(FROM, request, IncrementalAlterConfigsResponse).responses[0].error_code)

    def throttle(self, side: tuple[str, str], rate: int, replicas: str = "*") -> None:
        """On the brokers of that side, and their partitions of BIG."""
        assert self.alter(BROKER_RESOURCE, str(FROM if side is LEADER else TO), {side[0]: str(rate)}) == ErrorCode.NONE
        assert self.alter(TOPIC_RESOURCE, BIG, {side[1]: replicas}) == ErrorCode.NONE

    def reassign(self, *replicas: int) -> None:
        indexes = [ReassignablePartition(partition_index=each, replicas=[*replicas]) for each in range(self.partitions)]
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=BIG, partitions=indexes)])
        answer = self.ask(FROM, request, AlterPartitionReassignmentsResponse)
        assert answer.error_code == ErrorCode.NONE
        assert all(each.error_code == ErrorCode.NONE for each in answer.responses[0].partitions)

    def copies(self, node_id: int = TO) -> list[Partition]:
        return [each for each in self.nodes[node_id].partitions if each.topic == BIG]

    @property
    def copied_bytes(self) -> int:
        return sum(each.log.size_bytes for each in self.copies())

    @property
    def is_copied(self) -> bool:
        ends = {each.index: each.log.end_offset for each in self.copies(FROM)}
        return {each.index: each.log.end_offset for each in self.copies()} == ends
