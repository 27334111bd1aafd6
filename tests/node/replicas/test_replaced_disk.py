"""The disk of the broker that was in sync last is replaced: the other replicas keep what they have."""

from quire.controller.format import format_node
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.node.replicas.replicated import TOPIC, Replicated
from tests.node.replicas.test_replication import numbered

CONTROLLER = 4


def test_a_leader_with_a_new_disk_does_not_empty_the_replicas_that_were_behind() -> None:
    nodes = Replicated(["broker", "broker", "broker", "controller"], min_isr=1)
    nodes.written(*numbered(0, 10))
    nodes.until(nodes.is_whole)
    for follower in (2, 3):
        nodes.kill(follower)
    nodes.until(lambda: nodes.isr() == {1})
    nodes.written(*numbered(10, 15))
    nodes.kill(1)
    replace_disk(nodes, 1)
    for broker in (1, 2, 3):
        nodes.restart(broker)
    nodes.wait(5_000)
    assert not nodes.has_leader()
    allow_unclean_elections(nodes)
    nodes.until(nodes.is_whole)
    assert nodes.leader_node() != 1
    assert nodes.values(1) == nodes.values(2) == nodes.values(3) == numbered(0, 10)


def replace_disk(nodes: Replicated, node_id: int) -> None:
    cluster_id = nodes.nodes[CONTROLLER].cluster_id
    disk = nodes.disks[node_id] = SimDisk(SimRandom(7).stream("disk"))
    format_node(disk, SimRandom(7), nodes.config(node_id), now_ms=nodes.clock.now_ms(), cluster_id=cluster_id)


def allow_unclean_elections(nodes: Replicated) -> None:
    setting = AlterableConfig(name="unclean.leader.election.enable", config_operation=0, value="true")
    resource = AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[setting])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    assert nodes.ask(2, request, IncrementalAlterConfigsResponse).responses[0].error_code == 0
