"""The settings that the inventory's guarantees depend on."""

from collections.abc import Iterator

import pytest

from quire.client.admin.configs import Resource, ResourceType, describe_configs
from quire.client.admin.topics import NewTopic, create_topics, delete_topics
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError
from quire.testing import Cluster
from quire_samples.inventory.topics import ARCHIVE_LAG_MS, Topics, ensure_topics, new_topics
from tests.node.sim_nodes import SimNodes


def test_topics_are_created_on_three_nodes_with_the_replicas_that_the_brokers_allow() -> None:
    nodes = SimNodes().start()
    client = nodes.client()
    nodes.run(ensure_topics(client, Topics()))
    for topic in new_topics(Topics()):
        created = nodes.nodes[1].image.topics_by_name[topic.name]
        assert [len(each.replicas) for each in created.partitions.values()] == [1] * topic.partitions


def test_events_are_not_compacted_before_the_archive_has_had_its_time() -> None:
    _, events, _ = new_topics(Topics(), archive_lag_ms=1000)
    assert events.configs["cleanup.policy"] == "compact"
    assert int(events.configs["min.compaction.lag.ms"]) > 1000


@pytest.fixture(scope="module")
def client() -> Iterator[BlockingClient]:
    with Cluster() as cluster, BlockingClient(cluster.bootstrap_servers) as opened:
        yield opened


def test_on_three_nodes_they_have_three_replicas_of_which_two_must_be_in_sync() -> None:
    with Cluster(nodes=3, start_timeout_s=60) as cluster, BlockingClient(cluster.bootstrap_servers) as client:
        client.run(ensure_topics(client.cluster, Topics()))
        for topic in new_topics(Topics()):
            client.run(client.cluster.refresh([topic.name]))
            partitions = client.cluster.metadata.topics[topic.name].partitions.values()
            assert [len(set(each.replicas)) for each in partitions] == [3] * topic.partitions
            found = settings(client, topic.name)
            assert found["min.insync.replicas"] == "2"
            assert found["unclean.leader.election.enable"] == "false"
            assert topic.configs.items() <= found.items()


def settings(client: BlockingClient, topic: str) -> dict[str, str | None]:
    entries = client.run(describe_configs(client.cluster, Resource(ResourceType.TOPIC, topic)))
    return {entry.name: entry.value for entry in entries}


def test_they_are_made_once_and_then_taken_as_they_are(client: BlockingClient) -> None:
    for _ in range(2):
        client.run(ensure_topics(client.cluster, Topics()))
    assert settings(client, "inventory-events")["cleanup.policy"] == "compact"
    assert settings(client, "inventory-events")["min.compaction.lag.ms"] == str(2 * ARCHIVE_LAG_MS)
    assert settings(client, "inventory-refusals")["retention.ms"] == "-1"


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({"cleanup.policy": "delete"}, "would lose items"),
        ({"cleanup.policy": "compact,delete"}, "would lose items"),
        ({"cleanup.policy": "compact", "min.compaction.lag.ms": "10"}, "compacted before the archive"),
    ],
)
def test_an_event_topic_that_would_lose_events_is_refused(
    client: BlockingClient, configs: dict[str, str], said: str
) -> None:
    topics = Topics(events="other-events")
    client.run(create_topics(client.cluster, [NewTopic("other-events", 1, configs=configs)]))
    with pytest.raises(ApiError, match=said):
        client.run(ensure_topics(client.cluster, topics))
    client.run(delete_topics(client.cluster, ["other-events"]))
