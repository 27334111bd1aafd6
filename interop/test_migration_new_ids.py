"""Nodes of the other kind join a cluster with ids of their own, take over every partition, and the first nodes leave.

Whichever kind leads the quorum moves the partitions, and the other kind is the replica that is added or removed.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from interop.apache_kafka import ApacheKafka
from interop.counted_load import LEDGER, ORDERS, PARTITIONS, Load
from interop.mixed_cluster import MixedCluster, MixedNode, NodePlan, mixed_cluster, soon
from interop.test_migration import INTERNAL, SETTINGS

FIRST, LAST = (1, 2, 3), (4, 5, 6)
TOPICS = (ORDERS, LEDGER, *INTERNAL)
REASSIGN = "reassign.ReassignPartitionsCommand"


@pytest.fixture(params=[("kafka", "quire"), ("quire", "kafka")], ids=["to-quire", "to-kafka"])
def cluster(request: pytest.FixtureRequest, kafka: ApacheKafka, tmp_path: Path) -> Iterator[MixedCluster]:
    first, last = request.param
    plans, later = [NodePlan(id_, first) for id_ in FIRST], [NodePlan(id_, last) for id_ in LAST]
    with mixed_cluster(MixedCluster(kafka, tmp_path, plans, SETTINGS, later=later)) as running:
        yield running


def test_new_nodes_take_over_and_the_old_ones_leave(kafka: ApacheKafka, cluster: MixedCluster, tmp_path: Path) -> None:
    for topic in (ORDERS, LEDGER):
        cluster.create_topic(topic, cluster.nodes[FIRST[0]], PARTITIONS, replicas=3)
    cluster.wait_until_in_sync(ORDERS, LEDGER)
    load = Load(cluster.bootstrap_servers)
    load.start()
    for id_ in LAST:
        cluster.add(id_)
    load.wait_for_more()
    old, new = ([cluster.nodes[id_] for id_ in ids] for ids in (FIRST, LAST))
    at = ("--bootstrap-server", cluster.bootstrap_servers)

    plan = ("--reassignment-json-file", str(write_plan(cluster, tmp_path / "move.json")))
    kafka.tool(REASSIGN, *at, *plan, "--execute")
    soon(partial(are_on, cluster, LAST))
    verified = kafka.tool(REASSIGN, *at, *plan, "--verify")
    completed = re.findall(r"^Reassignment of partition (\S+) is completed", verified, re.MULTILINE)
    assert len(completed) == len(json.loads((tmp_path / "move.json").read_text())["partitions"])
    load.wait_for_more()

    voters = set(FIRST)
    for node in new:
        kafka.tool("MetadataQuorumCommand", *at, "--command-config", str(node.settings_path), "add-controller")
        voters.add(node.plan.id)
        cluster.wait_for_voters(voters)
    for node in old:
        named = ("--controller-id", str(node.plan.id), "--controller-directory-id", node.directory_id)
        kafka.tool("MetadataQuorumCommand", *at, "remove-controller", *named)
        voters.remove(node.plan.id)
        cluster.wait_for_voters(voters)
    assert voters == set(LAST)
    load.wait_for_more()

    for node in old:
        soon(partial(has_no_partitions, node))
        node.stop()
        kafka.tool("ClusterTool", "unregister", "--bootstrap-server", new[0].address, "--id", str(node.plan.id))
        load.wait_for_more()
    load.bootstrap_servers = cluster.bootstrap_servers
    at = ("--bootstrap-server", cluster.bootstrap_servers)
    assert kafka.tool("TopicCommand", *at, "--describe", "--under-replicated-partitions").strip() == ""
    endpoints = kafka.tool("ClusterTool", "list-endpoints", *at)
    assert re.findall(r"^(\d+) .* unfenced +broker", endpoints, re.MULTILINE) == [str(id_) for id_ in LAST]
    load.stop()
    print(load.judge())


def write_plan(cluster: MixedCluster, path: Path) -> Path:
    """Each replica moves to the node that takes the place of its own."""
    successors = dict(zip(FIRST, LAST, strict=True))
    moves = [
        {"topic": topic, "partition": each.partition, "replicas": [successors[id_] for id_ in each.replicas]}
        for topic in TOPICS
        for each in cluster.replicas_of(topic)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": moves}))
    return path


def are_on(cluster: MixedCluster, broker_ids: tuple[int, ...]) -> bool:
    asked = cluster.nodes[broker_ids[0]]
    replicas = [each for topic in TOPICS for each in cluster.replicas_of(topic, asked)]
    return all(set(each.replicas) == set(each.isr) == set(broker_ids) for each in replicas)


def has_no_partitions(node: MixedNode) -> bool:
    """A log that is deleted has another name until its files are removed."""
    return not any(re.search(r"-\d+$", path.name) for path in node.data_dir.iterdir() if "metadata" not in path.name)
