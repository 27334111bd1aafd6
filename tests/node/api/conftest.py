"""A node whose coordinators are ready, for the handlers of groups and transactions."""

import pytest

from quire.coordinators.runtime.shard import ShardState
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.node.conftest import SimulatedNode

COORDINATOR_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture
def coordinator() -> SimulatedNode:
    """With a topic `t` of two partitions, and one shard each for groups and transactions."""
    node = SimulatedNode(settings=COORDINATOR_SETTINGS).start()
    node.create_topic("t", partitions=2)
    for key_type in (0, 1):
        node.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"]), 6, FindCoordinatorResponse)
    runtimes = (node.node.coordinators.groups, node.node.coordinators.transactions)
    node.clock.run_until(lambda: all(shard.state is ShardState.ACTIVE for runtime in runtimes for shard in runtime))
    return node
