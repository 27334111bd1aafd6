"""What the cluster reports about itself: nodes, log directories, quorum, features, producers."""

import asyncio

import kafka
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from quire.protocol.errors import ErrorCode
from tests.wire.clients import WAIT_S, Confluent, KafkaPython, Message
from tests.wire.conftest import MakeTopic


def test_the_cluster_names_its_nodes_its_controller_and_itself(bootstrap: str, admin: AdminClient) -> None:
    described = admin.describe_cluster().result(WAIT_S)
    assert len(described.cluster_id) == 22
    (node,) = described.nodes
    assert f"{node.host}:{node.port}" == bootstrap
    assert described.controller.id == node.id
    assert admin.list_topics(timeout=WAIT_S).cluster_id == described.cluster_id


def test_kafka_python_and_aiokafka_see_the_same_cluster(bootstrap: str, admin: AdminClient) -> None:
    cluster_id = admin.describe_cluster().result(WAIT_S).cluster_id
    python = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        assert python.describe_cluster()["cluster_id"] == cluster_id
    finally:
        python.close()

    async def run() -> None:
        aio = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await aio.start()
        try:
            assert (await aio.describe_cluster())["cluster_id"] == cluster_id
        finally:
            await aio.close()

    asyncio.run(asyncio.wait_for(run(), WAIT_S))


def test_leaders_that_are_preferred_need_no_election(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        answer = admin.elect_leaders(0, {topic: [1, 7]}, raise_errors=False)
    finally:
        admin.close()
    (elected,) = answer.replica_election_results
    codes = {each.partition_id: each.error_code for each in elected.partition_result}
    assert codes == {1: ErrorCode.ELECTION_NOT_NEEDED, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_log_directories_show_each_partitions_size(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    Confluent().produce(bootstrap, topic, [Message(b"x" * 1000)] * 10)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        described = admin.describe_log_dirs()
    finally:
        admin.close()
    sizes = {
        (found["name"], partition["partition_index"]): partition["partition_size"]
        for broker in described
        for directory in broker["log_dirs"]
        for found in directory["topics"]
        for partition in found["partitions"]
    }
    assert sizes[topic, 0] > 10_000
    assert sizes[topic, 1] == 0


def test_the_quorum_has_one_voter_that_leads(bootstrap: str, admin: AdminClient) -> None:
    python = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        described = python.describe_metadata_quorum()
    finally:
        python.close()
    controller = admin.describe_cluster().result(WAIT_S).controller.id
    (topic,) = described["topics"]
    (partition,) = topic["partitions"]
    assert (topic["topic_name"], partition["partition_index"]) == ("__cluster_metadata", 0)
    assert partition["leader_id"] == controller
    assert partition["high_watermark"] > 0
    assert [voter["replica_id"] for voter in partition["current_voters"]] == [controller]


def test_features_are_described(bootstrap: str) -> None:
    python = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        described = python.describe_features()
    finally:
        python.close()
    assert described["metadata.version"]["finalized"] == (30, 30)
    assert described["kraft.version"]["finalized"] == (1, 1)


def test_active_producers_of_a_partition_are_described(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    KafkaPython().produce(bootstrap, topic, [Message(b"v")] * 3, idempotent=True)
    partition = kafka.TopicPartition(topic, 0)
    python = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        described = python.describe_producers([partition])
    finally:
        python.close()
    (producer,) = described[partition].active_producers
    assert producer.producer_id >= 0
    assert (producer.producer_epoch, producer.last_sequence) == (0, 2)
    assert producer.current_transaction_start_offset == -1
