"""The log of a coordinator on a partition with several replicas: what it may load, and when."""

import pytest

from quire.coordinators.runtime.state_log import Bounds
from quire.node.own_state_log import OwnStateLog
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.produce import ProduceResponse
from quire.replication.leader_role import LeaderRole
from quire.replication.members import Members
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

TIMEOUT_MS = 5_000


@pytest.fixture
def leader(node: SimulatedNode) -> LeaderRole:
    """The state log of a partition with one committed record, and one record that only this replica has."""
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    role = node.node.partitions.leader("t", None, 0)
    role.followers.change_members(Members((1, 2), (1, 2), 1))
    node.send(produce_request("t"), 9)
    return role


def log_of(node: SimulatedNode) -> OwnStateLog:
    return OwnStateLog(
        node.node.partitions, "t", 0, 0, node.node.clock, node.node.jobs, read_bytes=1000, timeout_ms=TIMEOUT_MS
    )


def test_loading_waits_until_the_log_is_committed_for_as_long_as_that_takes(
    node: SimulatedNode, leader: LeaderRole
) -> None:
    bounds = log_of(node).bounds()
    node.clock.run_for(20 * TIMEOUT_MS)
    assert not bounds.done
    leader.followers.fetched(2, -1, 2, 0)
    assert bounds.value == Bounds(0, 2)


def test_what_is_committed_can_be_loaded_while_too_few_replicas_are_in_sync(
    node: SimulatedNode, leader: LeaderRole
) -> None:
    bounds = log_of(node).bounds()
    leader.partition.settings = leader.partition.settings._replace(min_insync_replicas=2)
    leader.followers.is_under_min_isr = True
    leader.partition.move_high_watermark(2)
    leader.advance_high_watermark()
    assert bounds.value == Bounds(0, 2)


def test_without_the_leadership_there_is_nothing_to_load(node: SimulatedNode, leader: LeaderRole) -> None:
    bounds = log_of(node).bounds()
    leader.partition.become_follower(2, 1)
    assert isinstance(bounds.value, ApiError)
    assert bounds.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
