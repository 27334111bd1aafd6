"""Consumers that read from followers, and leaders that send them there (KIP-392)."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from quire.protocol.records import iterate_records
from tests.node.replicas.replicated import TOPIC, Replicated

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


def test_a_leader_sends_a_consumer_to_the_replica_in_its_rack() -> None:
    nodes = racks()
    nodes.written(b"a")
    follower = nodes.others(nodes.leader_node())[0]
    part = fetch(nodes, nodes.leader_node(), 0, rack=f"rack{follower}", max_wait_ms=10_000)
    assert (part.preferred_read_replica, values(part)) == (follower, [])
    nodes.until(nodes.is_whole)
    part = fetch(nodes, follower, 0, rack=f"rack{follower}")
    assert (part.preferred_read_replica, values(part)) == (-1, [b"a"])


@pytest.mark.parametrize("rack", ["rack of no broker", ""])
def test_a_consumer_of_another_rack_reads_from_the_leader(rack: str) -> None:
    nodes = racks()
    nodes.written(b"a")
    part = fetch(nodes, nodes.leader_node(), 0, rack=rack)
    assert (part.preferred_read_replica, values(part)) == (-1, [b"a"])


def test_a_consumer_in_the_rack_of_the_leader_reads_from_it() -> None:
    nodes = racks()
    nodes.written(b"a")
    leader = nodes.leader_node()
    assert values(fetch(nodes, leader, 0, rack=f"rack{leader}")) == [b"a"]


def test_a_broker_that_is_down_is_not_preferred() -> None:
    nodes = racks()
    nodes.written(b"a")
    follower = nodes.others(nodes.leader_node())[0]
    nodes.kill(follower)
    nodes.until(lambda: follower not in nodes.isr())
    assert fetch(nodes, nodes.leader_node(), 0, rack=f"rack{follower}").preferred_read_replica == -1


def test_without_the_setting_the_leader_keeps_its_consumers() -> None:
    nodes = Replicated()
    nodes.written(b"a")
    follower = nodes.others(nodes.leader_node())[0]
    assert values(fetch(nodes, nodes.leader_node(), 0, rack=f"rack{follower}")) == [b"a"]


def test_a_fetch_waits_at_a_follower_until_it_knows_that_records_are_committed() -> None:
    nodes = racks()
    follower = nodes.others(nodes.leader_node())[0]
    response = nodes.send(follower, request(nodes, 0, "", 10_000), version=13)
    nodes.wait(100)
    assert not response.done
    nodes.written(b"a")
    answer = nodes.settle(response)
    assert values(answer.responses[0].partitions[0]) == [b"a"]
    assert nodes.partition(follower).high_watermark == 1


def test_a_follower_that_has_not_copied_so_far_asks_the_consumer_to_try_again() -> None:
    nodes = racks()
    nodes.written(b"a")
    follower = nodes.others(nodes.leader_node())[0]
    assert fetch(nodes, follower, 5).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert fetch(nodes, nodes.leader_node(), 5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_waiting_fetch_is_answered_when_the_follower_becomes_the_leader() -> None:
    nodes = racks()
    nodes.written(b"a")
    nodes.until(nodes.is_whole)
    leader = nodes.leader_node()
    responses = [nodes.send(each, request(nodes, 1, "", 30_000), version=13) for each in nodes.others(leader)]
    nodes.kill(leader)
    nodes.until(lambda: all(each.done for each in responses), 5_000)


def test_old_clients_are_sent_to_the_leader() -> None:
    nodes = racks()
    nodes.written(b"a")
    follower = nodes.others(nodes.leader_node())[0]
    old = request(nodes, 0, "", 0)
    old.topics[0].topic = TOPIC
    (part,) = nodes.ask(follower, old, FetchResponse, version=10).responses[0].partitions
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
