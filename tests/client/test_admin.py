"""Admin operations against a real node; what the command line covers is tested there."""

from collections.abc import Iterator

import pytest

from quire.client.admin import cluster as cluster_admin
from quire.client.admin import configs, topics
from quire.client.admin.configs import AlterConfigOp, ConfigChange, ConfigSource, Resource, ResourceType
from quire.client.admin.leader_elections import elect_leaders
from quire.client.admin.quorum import describe_quorum
from quire.client.admin.reassignments import Reassignment, list_reassignments, reassign_partitions
from quire.client.metadata import Topic
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.testing import Cluster


@pytest.fixture(scope="module")
def client() -> Iterator[BlockingClient]:
    with Cluster() as cluster, BlockingClient(cluster.bootstrap_servers) as client:
        yield client


def create(client: BlockingClient, name: str, partitions: int = 1) -> None:
    result = client.run(topics.create_topics(client.cluster, [topics.NewTopic(name, partitions, 1)]))[name]
    assert isinstance(result, topics.CreatedTopic)


def test_created_topics_are_returned_with_their_ids_and_counts(client: BlockingClient) -> None:
    wanted = [
        topics.NewTopic("two", 2, 1),
        topics.NewTopic("placed", assignments={0: [1], 1: [1], 2: [1]}),
        topics.NewTopic("too many", 1, 1),
        topics.NewTopic("replicas", 1, 3),
    ]
    results = client.run(topics.create_topics(client.cluster, wanted))
    two, placed = results["two"], results["placed"]
    assert isinstance(two, topics.CreatedTopic) and isinstance(placed, topics.CreatedTopic)
    assert (two.partitions, two.replication_factor, placed.partitions) == (2, 1, 3)
    for name, code in [
        ("too many", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("replicas", ErrorCode.INVALID_REPLICATION_FACTOR),
    ]:
        refused = results[name]
        assert isinstance(refused, ApiError) and refused.code == code
    described = client.run(topics.describe_topics(client.cluster, ["two", "never"]))
    known, missing = described["two"], described["never"]
    assert isinstance(known, Topic) and known.topic_id == two.topic_id
    assert isinstance(missing, ApiError) and missing.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_one_setting_of_many_topics_is_described(client: BlockingClient) -> None:
    names = [f"many-{number}" for number in range(3)]
    for name in names:
        create(client, name)
    change = ConfigChange("min.insync.replicas", AlterConfigOp.SET, "2")
    client.run(configs.alter_configs(client.cluster, Resource(ResourceType.TOPIC, names[1]), [change]))
    asked = [*(f"never-{number}" for number in range(500)), *names]
    found = client.run(configs.describe_topic_setting(client.cluster, asked, "min.insync.replicas"))
    assert found == {"many-0": "1", "many-1": "2", "many-2": "1"}


def test_partitions_only_grow(client: BlockingClient) -> None:
    create(client, "grows", 2)
    assert client.run(topics.create_partitions(client.cluster, {"grows": 5})) == {"grows": None}
    refused = client.run(topics.create_partitions(client.cluster, {"grows": 3}))["grows"]
    assert refused is not None and refused.code == ErrorCode.INVALID_PARTITIONS
    placed = client.run(topics.create_partitions(client.cluster, {"grows": 6}, assignments={"grows": [[1]]}))
    assert placed == {"grows": None}


def test_elections_are_refused_partition_by_partition(client: BlockingClient) -> None:
    create(client, "led", 2)
    wanted = [TopicPartition("led", 1), TopicPartition("led", 2)]
    for unclean in (False, True):
        results = client.run(elect_leaders(client.cluster, wanted, unclean=unclean))
        codes = {where: None if failed is None else failed.code for where, failed in results.items()}
        assert codes == {
            TopicPartition("led", 1): ErrorCode.ELECTION_NOT_NEEDED,
            TopicPartition("led", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert client.run(elect_leaders(client.cluster, None, unclean=unclean)) == {}


def test_partitions_are_reassigned_each_with_its_own_result(client: BlockingClient) -> None:
    create(client, "moved")
    wanted = {TopicPartition("moved", 0): [1], TopicPartition("moved", 1): [1], TopicPartition("none", 0): [1]}
    results = client.run(reassign_partitions(client.cluster, wanted))
    codes = {where: None if failed is None else failed.code for where, failed in results.items()}
    assert codes == {
        TopicPartition("moved", 0): None,
        TopicPartition("moved", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        TopicPartition("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    (refused,) = client.run(
        reassign_partitions(client.cluster, {TopicPartition("moved", 0): [1, 2]}, may_change_factor=False)
    ).values()
    assert refused is not None and "broker 2, which is not registered" in refused.message
    (refused,) = client.run(reassign_partitions(client.cluster, {TopicPartition("moved", 0): None})).values()
    assert refused is not None and refused.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert client.run(list_reassignments(client.cluster)) == {}
    assert client.run(list_reassignments(client.cluster, [TopicPartition("moved", 0)])) == {}
    assert Reassignment((3, 4, 1), (3,), (1,)).target == (3, 4)


def test_records_are_cut_off_at_the_front(client: BlockingClient) -> None:
    create(client, "cut")
    producer = Producer(client.cluster)
    client.run(producer.prepare("cut"))
    producer.send_values("cut", [b"x"] * 10)
    client.loop.run_until(producer.flush())
    topic_partition = TopicPartition("cut", 0)
    assert client.run(topics.delete_records(client.cluster, {topic_partition: 4})) == {topic_partition: 4}
    assert client.run(list_offsets(client.cluster, {topic_partition: EARLIEST}))[topic_partition].offset == 4
    assert client.run(topics.delete_records(client.cluster, {topic_partition: -1})) == {topic_partition: 10}
    nowhere = TopicPartition("cut", 9)
    beyond = client.run(topics.delete_records(client.cluster, {topic_partition: 11, nowhere: 0}))
    for where, code in [
        (topic_partition, ErrorCode.OFFSET_OUT_OF_RANGE),
        (nowhere, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]:
        refused = beyond[where]
        assert isinstance(refused, ApiError) and refused.code == code
    assert client.run(list_offsets(client.cluster, {topic_partition: LATEST}))[topic_partition].offset == 10


def test_settings_name_their_source_and_change_one_by_one(client: BlockingClient) -> None:
    create(client, "settings")
    resource = Resource(ResourceType.TOPIC, "settings")
    changes = [
        ConfigChange("retention.ms", AlterConfigOp.SET, "5"),
        ConfigChange("cleanup.policy", AlterConfigOp.APPEND, "compact"),
    ]
    client.run(configs.alter_configs(client.cluster, resource, changes))
    entries = client.run(configs.describe_configs(client.cluster, resource, ["retention.ms", "segment.bytes"]))
    assert [(entry.name, entry.value, entry.source) for entry in entries] == [
        ("retention.ms", "5", ConfigSource.TOPIC),
        ("segment.bytes", "1073741824", ConfigSource.DEFAULT),
    ]
    with pytest.raises(ApiError) as caught:
        client.run(configs.alter_configs(client.cluster, resource, [ConfigChange("no.such", AlterConfigOp.SET, "1")]))
    assert caught.value.code == ErrorCode.INVALID_CONFIG
    assert Resource(ResourceType.TOPIC, "settings") in client.run(
        configs.list_config_resources(client.cluster, [ResourceType.TOPIC])
    )


def test_the_cluster_tells_its_nodes_features_quorum_and_directories(client: BlockingClient) -> None:
    create(client, "on-disk")
    description = client.run(cluster_admin.describe_cluster(client.cluster))
    assert [broker.node_id for broker in description.brokers] == [1]
    features = {feature.name: feature for feature in client.run(cluster_admin.describe_features(client.cluster))}
    assert features["metadata.version"].finalized > 0
    quorum = client.run(describe_quorum(client.cluster))
    assert quorum.leader_id == 1 and [voter.lag for voter in quorum.voters] == [0]
    (directory,) = client.run(cluster_admin.describe_log_dirs(client.cluster, 1))
    assert directory.error is None and directory.total_bytes > 0
    assert any(replica.topic == "on-disk" for replica in directory.replicas)


def test_a_feature_beyond_what_is_supported_is_refused(client: BlockingClient) -> None:
    with pytest.raises(ApiError) as refused:
        levels = {"metadata.version": 9999}
        kind = cluster_admin.UpgradeType.UPGRADE
        client.run(cluster_admin.update_features(client.cluster, levels, kind, validate_only=True))
    assert refused.value.code == ErrorCode.INVALID_UPDATE_VERSION
