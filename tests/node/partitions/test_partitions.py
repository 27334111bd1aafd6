"""What a node does with the logs of partitions that it follows."""

import logging

import pytest

from quire.replication.members import Members
from tests.node.replicas.replicated import Replicated


def test_a_follower_says_when_it_removes_committed_records(caplog: pytest.LogCaptureFixture) -> None:
    nodes = Replicated()
    nodes.written(b"0", b"1", b"2")
    nodes.until(nodes.is_whole)
    node_id = nodes.others(nodes.leader_node())[0]
    nodes.nodes[node_id].partitions.truncate(nodes.partition(node_id), 1)
    assert "committed records lost partition=t-0 from=1 to=2: the leader does not have them" in caplog.text


def test_removing_what_was_never_committed_is_no_loss(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quire.partitions")
    nodes = Replicated()
    nodes.written(b"0")
    old = nodes.leader_node()
    name = nodes.isolate(old)
    nodes.settle(nodes.produce(b"1", to=old, acks=1))
    nodes.until(lambda: nodes.leader_node() != old)
    nodes.written(b"2")
    nodes.network.heal(name)
    nodes.until(nodes.is_whole)
    assert "replica truncated partition=t-0 from=1 to=1" in caplog.text
    assert "committed records lost" not in caplog.text


def test_what_the_leader_deleted_was_committed_even_if_this_node_leads_when_it_deletes_it() -> None:
    """A follower that does not know yet becomes the leader while it writes its checkpoint."""
    nodes = Replicated()
    nodes.written(b"0", b"1", b"2")
    nodes.until(nodes.is_whole)
    node_id = nodes.others(nodes.leader_node())[0]
    partition, moved = nodes.partition(node_id), []
    partition.high_watermark = 1
    nodes.nodes[node_id].partitions.follow_log_start(partition, 2, lambda: moved.append(partition.leader))
    nodes.kill(nodes.leader_node())
    partition.become_leader(9, Members((1, 2, 3), (1, 2, 3), 9))
    nodes.until(lambda: bool(moved))
    assert moved == [partition.leader]
    assert partition.high_watermark >= partition.log_start_offset == 2
