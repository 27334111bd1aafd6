"""Leaders that send consumers to the replica in their rack (KIP-392)."""

import pytest

from tests.node.replicas.consumers import fetch, racks, values
from tests.node.replicas.replicated import Replicated


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
