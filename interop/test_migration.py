"""A cluster of Apache Kafka becomes a cluster of Quire under load, node by node, and Apache Kafka again.

Every node keeps its id, addresses, settings and data directory; only the program changes. docs/migration.md describes
the same steps for people.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from interop.apache_kafka import ApacheKafka
from interop.counted_load import LEDGER, LEDGER_GROUP, ORDERS, PARTITIONS, READERS, Load
from interop.mixed_cluster import CLUSTER_ID, MixedCluster, MixedNode, NodePlan, mixed_cluster, soon

NODES = (1, 2, 3)
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    # Nodes of one kind start with snapshots of the other.
    "metadata.log.max.record.bytes.between.snapshots": "6000",
}
INTERNAL = ("__consumer_offsets", "__transaction_state")
CONFIG, GROUPS = "kafka.admin.ConfigCommand", "consumer.group.ConsumerGroupCommand"
ALICE = ("--entity-type", "users", "--entity-name", "alice")
METRICS = ("--entity-type", "client-metrics", "--entity-name", "watched")


@pytest.fixture(params=["dynamic", "static"])
def cluster(request: pytest.FixtureRequest, kafka: ApacheKafka, tmp_path: Path) -> Iterator[MixedCluster]:
    plans = [NodePlan(id_, "kafka") for id_ in NODES]
    planned = MixedCluster(kafka, tmp_path, plans, SETTINGS, static=request.param == "static")
    with mixed_cluster(planned) as running:
        yield running


def test_all_nodes_become_quire_and_apache_kafka_again(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    first = cluster.nodes[NODES[0]]
    for topic in (ORDERS, LEDGER):
        cluster.create_topic(topic, first, PARTITIONS, replicas=3)
    cluster.wait_until_in_sync(ORDERS, LEDGER)
    store_what_quire_only_keeps(kafka, cluster)
    kept = what_quire_only_keeps(kafka, cluster)
    features = finalized_features(kafka, cluster)
    load = Load(cluster.bootstrap_servers)
    load.start()
    for kind in ("quire", "kafka"):
        stopped_with: dict[int, set[str]] = {}
        for node in cluster.nodes.values():
            load.wait_for_more()
            node.stop()
            stopped_with[node.plan.id] = snapshots(node)
            node.become(kind)
            load.wait_for_more()
            node.start()
            cluster.wait_until_serving()
            cluster.wait_until_in_sync(ORDERS, LEDGER, *INTERNAL)
            assert_healthy(kafka, cluster)
            assert f"cluster.id={CLUSTER_ID}" in (node.data_dir / "meta.properties").read_text()
            assert f"directory.id={node.directory_id}" in (node.data_dir / "meta.properties").read_text()
        for node in cluster.nodes.values():
            soon(partial(has_other_snapshots, node, stopped_with[node.plan.id]))
    load.wait_for_more()
    load.stop()
    print(load.judge())
    assert what_quire_only_keeps(kafka, cluster) == kept
    assert finalized_features(kafka, cluster) == features


def assert_healthy(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    """As Apache Kafka's tools see it."""
    at = ("--bootstrap-server", cluster.bootstrap_servers)
    status = kafka.tool("MetadataQuorumCommand", *at, "describe", "--replication")
    assert sorted(re.findall(r"^\d+ .*(Leader|Follower)\s*$", status, re.MULTILINE)) == ["Follower"] * 2 + ["Leader"]
    said = kafka.tool("TopicCommand", *at, "--describe", "--under-replicated-partitions")
    assert said.strip() == ""
    rows = kafka.tool(GROUPS, *at, "--describe", "--all-groups", "--offsets")
    for group in (READERS, LEDGER_GROUP):
        assert len(re.findall(rf"^{group} ", rows, re.MULTILINE)) == PARTITIONS


def snapshots(node: MixedNode) -> set[str]:
    """Of the metadata log."""
    return {path.name for path in (node.data_dir / "__cluster_metadata-0").glob("*.checkpoint")}


def has_other_snapshots(node: MixedNode, before: set[str]) -> bool:
    return bool(snapshots(node) - before)


def store_what_quire_only_keeps(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    """Credentials, quotas and metrics subscriptions, which a Quire node has no use for."""
    alter = ("--bootstrap-server", cluster.bootstrap_servers, "--alter", "--add-config")
    for setting in ("SCRAM-SHA-256=[password=secret]", "producer_byte_rate=100000000"):
        kafka.tool(CONFIG, *alter, setting, *ALICE)
    kafka.tool(CONFIG, *alter, "metrics=org.apache.kafka.producer.,interval.ms=30000", *METRICS)


def what_quire_only_keeps(kafka: ApacheKafka, cluster: MixedCluster) -> list[str]:
    describe = ("--bootstrap-server", cluster.bootstrap_servers, "--describe")
    found = [kafka.tool(CONFIG, *describe, *entity) for entity in (ALICE, METRICS)]
    for setting in ("SCRAM-SHA-256", "producer_byte_rate", "interval.ms"):
        assert setting in "".join(found)
    return found


def finalized_features(kafka: ApacheKafka, cluster: MixedCluster) -> list[tuple[str, str]]:
    said = kafka.tool("FeatureCommand", "--bootstrap-server", cluster.bootstrap_servers, "describe")
    return re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", said)
