"""After failures, every acknowledged record is in the log once, and all nodes agree, in their answers and their
files."""

from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from quire.testing import WireConnection
from tests.crash.admin_load import SETTING, TOPIC_RESOURCE, AdminLoad
from tests.crash.metadata_files import common_image
from tests.crash.real_cluster import RealCluster, wait_while
from tests.wire.raw import new_producer_id

Partitions = dict[int, tuple[int, int, tuple[int, ...], tuple[int, ...]]]
"""Leader, leader epoch, replicas and ISR by index."""
Topics = dict[str, tuple[bytes, Partitions]]


def assert_everything_is_there(cluster: RealCluster, load: AdminLoad) -> None:
    """Every node must run. Kills all of them at the end, to read their files."""
    acknowledged = load.finish()
    cluster.wait_until_unfenced()
    known: dict[int, Topics] = {}
    wait_while(lambda: _disagreement(cluster, known))
    topics = known[1]
    assert acknowledged.partitions.keys() <= topics.keys() <= load.attempted
    for name, count in acknowledged.partitions.items():
        assert sorted(topics[name][1]) == list(range(count)), name
    assert len({topic_id for topic_id, _ in topics.values()}) == len(topics)
    for node_id in cluster.nodes:
        assert settings_of(cluster, node_id, sorted(acknowledged.settings)) == acknowledged.settings
    producer_ids = acknowledged.producer_ids + [_new_producer_id(cluster, node_id) for node_id in cluster.nodes]
    assert len(set(producer_ids)) == len(producer_ids)
    cluster.kill()
    image = common_image(node.metadata_log for node in cluster.nodes.values())
    assert {topic.name for topic in image.topics_by_name.values()} == topics.keys()
    assert image.next_producer_id > max(producer_ids)


def topics_of(cluster: RealCluster, node_id: int) -> Topics:
    found: Topics = {}
    for topic in cluster.metadata(node_id).topics:
        assert topic.name is not None and topic.name not in found
        found[topic.name] = (
            topic.topic_id,
            {
                each.partition_index: (
                    each.leader_id,
                    each.leader_epoch,
                    tuple(each.replica_nodes),
                    tuple(each.isr_nodes),
                )
                for each in topic.partitions
            },
        )
    return found


def settings_of(cluster: RealCluster, node_id: int, topics: list[str]) -> dict[str, str | None]:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=[SETTING])
        for name in topics
    ]
    with WireConnection(cluster.nodes[node_id].address) as connection:
        response = connection.call(DescribeConfigsRequest(resources=resources), 4, DescribeConfigsResponse)
    return {result.resource_name: result.configs[0].value for result in response.results}


def _disagreement(cluster: RealCluster, known: dict[int, Topics]) -> str:
    """The first partition without a leader, or the first topic about which two nodes disagree; fills `known`."""
    try:
        known.update({node_id: topics_of(cluster, node_id) for node_id in cluster.nodes})
    except OSError as error:
        return f"not all nodes answer: {error!r}"
    names = {name for topics in known.values() for name in topics}
    for name in sorted(names):
        found = {node_id: topics.get(name) for node_id, topics in known.items()}
        first = found[1]
        if first is None or any(each != first for each in found.values()):
            return f"{name} differs: {found}"
        if any(leader == -1 for leader, *_ in first[1].values()):
            return f"{name} has a partition without a leader: {first}"
    return ""


def _new_producer_id(cluster: RealCluster, node_id: int) -> int:
    with WireConnection(cluster.nodes[node_id].address) as connection:
        return new_producer_id(connection)
