"""Consumers that read from followers (KIP-392)."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchResponse
from tests.node.replicas.consumers import fetch, racks, request, values
from tests.node.replicas.replicated import TOPIC


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


@pytest.mark.parametrize("last_epoch", [0, 1])
def test_a_follower_that_has_not_copied_so_far_does_not_say_that_the_log_was_truncated(last_epoch: int) -> None:
    """A consumer that says which epoch it has read last: the follower has only a part of it, or nothing."""
    nodes = racks()
    nodes.written(b"a")
    follower = nodes.others(nodes.leader_node())[0]
    ahead = request(nodes, 5, "", 0)
    ahead.topics[0].partitions[0].last_fetched_epoch = last_epoch
    (part,) = nodes.ask(follower, ahead, FetchResponse, version=13).responses[0].partitions
    assert (part.error_code, part.diverging_epoch.epoch) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)


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
