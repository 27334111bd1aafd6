"""Three nodes, each broker and controller, and a topic with a replica on each, of which two must be in sync."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from quire.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from quire.testing import Cluster, WireConnection
from tests.crash.real_cluster import RealCluster, wait_until, wait_while
from tests.crash.replicated_load import PARTITIONS, WAIT_S, ReplicatedLoad, client_settings
from tests.crash.verdict import Verdict, assert_clean, replicas_differ
from tests.wire.broker_settings import SETTINGS

ASK_S = 2.0
NODES = 3
TOPIC = "replicated"
REPLICATED: dict[str, str | int] = SETTINGS | {
    "default.replication.factor": NODES,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": NODES,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": NODES,
    "transaction.state.log.min.isr": 2,
    # A broker that does not answer is fenced after this time. One that is killed is fenced at once.
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 400,
    "replica.lag.time.max.ms": 3000,
}


@contextmanager
def replicated_cluster(**settings: str | int) -> Iterator[Cluster]:
    """Three nodes with an empty topic."""
    with Cluster(nodes=NODES, config=REPLICATED | settings, start_timeout_s=WAIT_S) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC)
        yield cluster
        assert "Traceback" not in cluster.log()


def create_replicated(
    bootstrap: str, topic: str, partitions: int = PARTITIONS, config: dict[str, str] | None = None
) -> None:
    admin = AdminClient(client_settings(bootstrap))
    admin.create_topics([NewTopic(topic, partitions, NODES, config=config or {})])[topic].result(WAIT_S)
    wait_until_in_sync(bootstrap, topic)
    for address in bootstrap.split(","):
        wait_until(
            lambda address=address: len(_partitions(address, topic)) == partitions,  # type: ignore[misc]
            f"{address} does not know {topic}",
        )


def in_sync(bootstrap: str, topic: str) -> dict[int, tuple[int, set[int]]]:
    """Leader and ISR of each partition: the newest that any node knows, and the smallest ISR of these."""
    newest: dict[int, MetadataResponsePartition] = {}
    for address in bootstrap.split(","):
        for partition in _partitions(address, topic):
            known = newest.get(partition.partition_index)
            if known is None or _age(partition) > _age(known):
                newest[partition.partition_index] = partition
    return {index: (each.leader_id, set(each.isr_nodes)) for index, each in newest.items()}


def _age(partition: MetadataResponsePartition) -> tuple[int, int]:
    return partition.leader_epoch, -len(partition.isr_nodes)


def _partitions(address: str, topic: str) -> list[MetadataResponsePartition]:
    """The same according to one node; empty if it does not answer."""
    try:
        with WireConnection(address, timeout_s=ASK_S) as connection:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
            return connection.call(request, 12, MetadataResponse).topics[0].partitions
    except OSError:
        return []


def wait_until_in_sync(bootstrap: str, topic: str, count: int = NODES) -> None:
    """Waits until every partition has a leader and this many in-sync replicas."""

    def wrong() -> str:
        found = in_sync(bootstrap, topic)
        is_right = found and all(leader >= 0 and len(isr) == count for leader, isr in found.values())
        return "" if is_right else f"leaders and in-sync replicas are {found}"

    wait_while(wrong)


def not_led_by(bootstrap: str, topic: str, nodes: Collection[int]) -> str:
    """An empty text if every partition is led by one of these nodes, otherwise the leaders; -1 stands for no leader."""
    found = in_sync(bootstrap, topic)
    is_right = found and all(leader in nodes for leader, _ in found.values())
    return "" if is_right else f"leaders and in-sync replicas are {found}, and not one of {nodes} leads each"


def wait_for_other_leader(cluster: Cluster, partition: int, than: int) -> None:
    def is_other() -> bool:
        leader, _ = in_sync(cluster.bootstrap_servers, TOPIC).get(partition, (-1, set()))
        return leader not in (-1, than)

    wait_until(is_other, f"partition {partition} has no other leader than node {than}")


def run_under_load(
    cluster: Cluster | RealCluster, faults: Callable[[ReplicatedLoad], None], *, transactions: bool = True
) -> Verdict:
    """Causes faults while clients work.

    At the end all replicas must be in sync and equal, with all acknowledged records.
    """
    bootstrap = cluster.bootstrap_servers
    with ReplicatedLoad(bootstrap, TOPIC, transactions=transactions) as load:
        faults(load)
        load.wait_for_progress()
        wait_until_in_sync(bootstrap, TOPIC)
        verdict = assert_clean(load)
    kill_and_compare(cluster)
    return verdict


def kill_and_compare(
    cluster: Cluster | RealCluster, topic: str = TOPIC, partitions: int = PARTITIONS, nodes: int = NODES
) -> None:
    """The replicas of the first `nodes` are equal byte for byte. The clients have stopped."""
    # Busy followers may have left the ISR meanwhile, and then lack what the others have committed.
    wait_until_in_sync(cluster.bootstrap_servers, topic, count=nodes)
    cluster.kill()
    assert replicas_differ(folders_of(cluster)[:nodes], topic, partitions) == ""


def folders_of(cluster: Cluster | RealCluster) -> list[Path]:
    if isinstance(cluster, RealCluster):
        return [node.data for node in cluster.nodes.values()]
    return [cluster.data_dir / f"node-{node_id}" for node_id in cluster.nodes]


def address_of(cluster: Cluster | RealCluster, node: int) -> str:
    """The address of one node for clients."""
    return cluster.bootstrap_servers.split(",")[list(cluster.nodes).index(node)]


def running(cluster: Cluster | RealCluster) -> list[int]:
    """The ids of the nodes that run."""
    if isinstance(cluster, RealCluster):
        return [node.id for node in cluster.nodes.values() if node.process.pid is not None]
    return list(cluster.pids)


def leaders_of(cluster: Cluster | RealCluster, topic: str = TOPIC) -> dict[int, int]:
    """The leader of each partition; -1 if there is none."""
    return {index: leader for index, (leader, _) in in_sync(cluster.bootstrap_servers, topic).items()}
