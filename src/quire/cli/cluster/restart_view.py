"""Asks a cluster for what decides whether a node may be stopped.

Every broker is asked, and a replica counts as in sync only if all of them say so: a broker that learns of a change a
little later than the others must not make a restart look safe. A broker that does not answer counts as down.
"""

from typing import NamedTuple

from quire.cli.cluster.quorum import quorum_or_none
from quire.cli.cluster.restart_checks import ClusterView, PartitionView
from quire.client.admin.cluster import describe_cluster
from quire.client.admin.configs import describe_topic_setting
from quire.client.cluster import Cluster
from quire.client.errors import ClientError
from quire.client.shell_blocking import BlockingClient
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.steps import Steps

_PATIENCE_MS = 5_000.0


class _Known(NamedTuple):
    replicas: tuple[int, ...]
    isr: frozenset[int]


def look(client: BlockingClient) -> ClusterView:
    described = client.run(describe_cluster(client.cluster, with_fenced=True))
    client.run(client.cluster.refresh([]))
    registered = {broker.node_id: broker.rack for broker in described.brokers}
    serving = set()
    known: dict[tuple[str, int], _Known] = {}
    for broker in sorted(registered.keys() - set(described.fenced)):
        answer = client.run(_metadata_of(client.cluster, broker))
        if answer is not None:
            serving.add(broker)
            _narrow(known, answer)
    minimum = _minimum(client, sorted({topic for topic, _ in known}))
    partitions = [
        PartitionView(
            f"{topic}-{index}",
            each.replicas,
            each.isr & serving,
            min(minimum.get(topic, 1), len(each.replicas)),
        )
        for (topic, index), each in sorted(known.items())
    ]
    return ClusterView(registered, frozenset(serving), partitions, quorum_or_none(client))


def _metadata_of(cluster: Cluster, broker: int) -> Steps[MetadataResponse | None]:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    try:
        return (yield from cluster.ask(broker, request, MetadataResponse, timeout_ms=_PATIENCE_MS))
    except ClientError:
        return None


def _narrow(known: dict[tuple[str, int], _Known], answer: MetadataResponse) -> None:
    for topic in answer.topics:
        for partition in topic.partitions:
            key = topic.name or "", partition.partition_index
            isr = frozenset(partition.isr_nodes) - frozenset(partition.offline_replicas)
            before = known.get(key)
            known[key] = _Known(tuple(partition.replica_nodes), isr if before is None else isr & before.isr)


def _minimum(client: BlockingClient, topics: list[str]) -> dict[str, int]:
    values = client.run(describe_topic_setting(client.cluster, topics, "min.insync.replicas"))
    return {topic: int(value) for topic, value in values.items()}
