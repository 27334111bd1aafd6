"""Consumers with a rack, and a topic with a replica in each rack."""

from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from quire.protocol.records import iterate_records
from tests.node.replicas.replicated import Replicated

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def racks() -> Replicated:
    return Replicated(replica_selector_class=RACK_AWARE)


def request(nodes: Replicated, offset: int, rack: str, max_wait_ms: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic_id=nodes.leader().partition.topic_id, partitions=[wanted])
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, rack_id=rack, topics=[topic])


def fetch(nodes: Replicated, node_id: int, offset: int, *, rack: str = "", max_wait_ms: int = 0) -> PartitionData:
    response = nodes.ask(node_id, request(nodes, offset, rack, max_wait_ms), FetchResponse, version=13)
    ((part,),) = [topic.partitions for topic in response.responses]
    return part


def values(part: PartitionData) -> list[bytes | None]:
    return [record.value for record in iterate_records(part.records or b"")]  # type: ignore[arg-type]
