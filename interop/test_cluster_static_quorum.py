"""A static quorum of two Quire nodes and one Apache Kafka: either kind leads, and the others follow it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.apache_kafka import ApacheKafka, ToolError
from interop.mixed_cluster import MixedCluster, NodePlan, mixed_cluster, soon
from tests.wire.clients import Confluent, Message

QUIRE = (1, 2)
KAFKA = 3
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "2000"}


@pytest.fixture
def cluster(kafka: ApacheKafka, tmp_path: Path) -> Iterator[MixedCluster]:
    plans = [*(NodePlan(id_, "quire") for id_ in QUIRE), NodePlan(KAFKA, "kafka")]
    with mixed_cluster(MixedCluster(kafka, tmp_path, plans, SNAPSHOTS, static=True)) as running:
        yield running


def assert_all_serve(cluster: MixedCluster, name: str) -> None:
    """Every broker creates a topic, whose partitions are on all of them, and records go to each partition."""
    for node in cluster.nodes.values():
        topic = f"{name}-{node.plan.id}"
        cluster.create_topic(topic, at=node)
        leaders = cluster.agree_on(topic)
        assert set(leaders.values()) == set(cluster.nodes)
    for partition in leaders:
        messages = [Message(b"%d" % number) for number in range(10)]
        Confluent().produce(cluster.bootstrap_servers, topic, messages, partition=partition, idempotent=True)
        read = Confluent().consume(cluster.bootstrap_servers, topic, len(messages), partition=partition)
        assert [record.value for record in read] == [message.value for message in messages]


def test_each_kind_leads_the_other(kafka: ApacheKafka, cluster: MixedCluster) -> None:
    nodes = cluster.nodes
    assert cluster.voters() == set(nodes)
    assert_all_serve(cluster, "first")

    # One Quire node lacks what the other two commit. If only that one is left beside it, Apache Kafka must lead.
    behind, ahead = sorted(QUIRE, key=lambda id_: id_ == cluster.leader().plan.id)
    nodes[behind].kill()
    cluster.create_topic("missed", at=nodes[KAFKA])
    nodes[ahead].kill()
    nodes[behind].start()
    assert cluster.leader() is nodes[KAFKA]
    nodes[ahead].start()
    cluster.wait_until_serving()
    assert cluster.leader() is nodes[KAFKA]
    assert_all_serve(cluster, "kafka-leads")

    nodes[KAFKA].kill()
    assert cluster.leader().plan.id in QUIRE
    cluster.create_topic("without-kafka", at=nodes[1])
    nodes[KAFKA].start()
    cluster.wait_until_serving()
    assert cluster.leader().plan.id in QUIRE
    assert_all_serve(cluster, "quire-leads")

    # The upgrade to a dynamic quorum needs the directory ids of all voters, which both kinds report to the leader.
    upgrade = ("upgrade", "--feature", "kraft.version=1")
    soon(lambda: upgraded(kafka, cluster, *upgrade))
    assert cluster.voters() == set(nodes)
    leader = cluster.leader()
    removed = ("--controller-id", str(leader.plan.id), "--controller-directory-id", leader.directory_id)
    kafka.tool("MetadataQuorumCommand", "--bootstrap-server", cluster.bootstrap_servers, "remove-controller", *removed)
    assert cluster.voters() == set(nodes) - {leader.plan.id}
    assert_all_serve(cluster, "dynamic")


def upgraded(kafka: ApacheKafka, cluster: MixedCluster, *arguments: str) -> bool:
    try:
        kafka.tool("FeatureCommand", "--bootstrap-server", cluster.bootstrap_servers, *arguments)
    except ToolError as error:
        print(error)
        return False
    return True
