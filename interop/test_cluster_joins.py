"""Nodes of one kind join a cluster that the other kind founded: as brokers, as observers, as voters, as the leader.

The founder has taken snapshots by then, so those that join begin with one of them.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from interop.apache_kafka import ApacheKafka
from interop.mixed_cluster import MixedCluster, MixedNode, NodePlan, mixed_cluster, soon
from tests.wire.clients import Confluent, Message

FOUNDER, BROKER, CONTROLLER = 1, 2, 3
SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.retention.bytes": "4000",
    "internal.metadata.log.segment.bytes": "4000",
}
KINDS = ["quire", "kafka"]


@pytest.fixture(params=KINDS)
def cluster(request: pytest.FixtureRequest, kafka: ApacheKafka, tmp_path: Path) -> Iterator[MixedCluster]:
    other = KINDS[1 - KINDS.index(request.param)]
    later = [NodePlan(BROKER, other, "broker"), NodePlan(CONTROLLER, other, "controller")]
    founder = NodePlan(FOUNDER, request.param)
    with mixed_cluster(MixedCluster(kafka, tmp_path, [founder], SNAPSHOTS, later=later)) as running:
        yield running


def metadata_files(node: MixedNode, suffix: str) -> list[str]:
    folder = node.data_dir / "__cluster_metadata-0"
    return sorted(path.stem for path in folder.iterdir() if path.suffix == suffix)


def has_snapshots(node: MixedNode) -> bool:
    return any(not stem.startswith("0" * 20) for stem in metadata_files(node, ".checkpoint"))


def began_with_a_snapshot(node: MixedNode) -> bool:
    """A log that restarts at a snapshot has its first segment there."""
    return all(int(stem) > 0 for stem in metadata_files(node, ".log"))


def assert_serves(cluster: MixedCluster, topic: str) -> None:
    """Every broker creates a topic and has partitions of it; a group reads what was written to them."""
    brokers = [node for node in cluster.nodes.values() if node.is_broker and node.runs]
    for node in brokers:
        cluster.create_topic(f"{topic}-{node.plan.id}", at=node)
        leaders = cluster.agree_on(f"{topic}-{node.plan.id}")
        assert set(leaders.values()) == {broker.plan.id for broker in brokers}
    name = f"{topic}-{brokers[-1].plan.id}"
    for partition in leaders:
        Confluent().produce(cluster.bootstrap_servers, name, [Message(b"x")], partition=partition)
        (read,) = Confluent().consume(cluster.bootstrap_servers, name, 1, partition=partition)
        assert read.value == b"x"


def test_nodes_of_the_other_kind_join_and_lead(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    founder = cluster.nodes[FOUNDER]
    for number in range(10):
        cluster.create_topic(f"before-{number}", at=founder)
    soon(partial(has_snapshots, founder))

    broker = cluster.add(BROKER)
    assert began_with_a_snapshot(broker)
    assert cluster.agree_on("before-0") == dict.fromkeys(range(6), FOUNDER)
    assert_serves(cluster, "beside")

    controller = cluster.add(CONTROLLER)
    soon(lambda: cluster.observers() == {BROKER, CONTROLLER})
    assert began_with_a_snapshot(controller)
    add(kafka, cluster, controller)
    assert cluster.voters() == {FOUNDER, CONTROLLER}
    assert cluster.leader() is founder
    assert_serves(cluster, "voting")

    remove(kafka, cluster, founder)
    assert cluster.leader() is controller
    assert cluster.voters() == {CONTROLLER}
    assert_serves(cluster, "leading")

    add(kafka, cluster, founder)
    remove(kafka, cluster, controller)
    assert cluster.leader() is founder
    assert_serves(cluster, "back")

    # A clean stop of the other broker goes through the controlled shutdown; what it served has no leader then.
    broker.stop()
    soon(lambda: BROKER not in cluster.leaders_of("back-2", founder).values())


@pytest.mark.parametrize(("founder", "joins"), [("quire", "kafka"), ("kafka", "quire")])
def test_a_controller_adds_itself_to_the_voters(founder: str, joins: str, kafka: ApacheKafka, tmp_path: Path) -> None:
    automatic = {"controller.quorum.auto.join.enable": "true"}
    plans, later = [NodePlan(FOUNDER, founder)], [NodePlan(CONTROLLER, joins, "controller")]
    with mixed_cluster(MixedCluster(kafka, tmp_path, plans, automatic, later=later)) as cluster:
        cluster.add(CONTROLLER)
        soon(lambda: cluster.voters() == {FOUNDER, CONTROLLER})
        assert_serves(cluster, "joined")


def add(kafka: ApacheKafka, cluster: MixedCluster, node: MixedNode) -> None:
    at = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(node.settings_path))
    kafka.tool("MetadataQuorumCommand", *at, "add-controller")


def remove(kafka: ApacheKafka, cluster: MixedCluster, node: MixedNode) -> None:
    named = ("--controller-id", str(node.plan.id), "--controller-directory-id", node.directory_id)
    kafka.tool("MetadataQuorumCommand", "--bootstrap-server", cluster.bootstrap_servers, "remove-controller", *named)
