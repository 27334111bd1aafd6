"""Pipelines on three nodes of Apache Kafka, one of which is killed in the middle: every record is processed once.

An inventory with its processor and its archive, and a stream that Spark copies from topic to topic, run while a broker
is killed with -9 and restarts after a while.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from interop.apache_kafka import ApacheKafka
from interop.apache_kafka_cluster import KafkaCluster, kafka_cluster
from pipelines.inventory.audit import archive
from quire.client.admin.configs import Resource, ResourceType, describe_configs
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.spark.delta import DeltaSink
from quire_samples.inventory.topics import ensure_topics
from tests.samples.command import samples
from tests.samples.inventory.running import (
    assert_every_command_was_carried_out_once,
    made_commands,
    own_config,
    records,
    send,
)
from tests.samples.inventory.test_inventory_killed import Supervisor
from tests.wire.clients import eventually as soon

eventually = partial(soon, wait_s=180)
RECORDS = 20_000
COMMANDS = 10_000
TOPIC, COPY = "numbers", "numbers-copied"


@pytest.fixture(scope="module")
def cluster(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with kafka_cluster(kafka, tmp_path_factory.mktemp("kafka")) as running:
        yield running


def create(client: BlockingClient) -> None:
    wanted = [NewTopic(name, 3, 3, {"min.insync.replicas": "2"}) for name in (TOPIC, COPY)]
    for result in client.run(create_topics(client.cluster, wanted)).values():
        assert not isinstance(result, Exception), result


def fill(client: BlockingClient, numbers: range) -> None:
    producer = Producer(client.cluster)
    client.run(producer.prepare(TOPIC))
    for number in numbers:
        producer.send(TOPIC, b"%d" % number, key=b"%d" % number)
    client.loop.run_until(producer.flush())
    assert producer.first_error is None


def stream(spark: SparkSession, servers: str, topic: str, limit: int) -> DataFrame:
    return (
        spark.readStream.format("quire")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", limit)
        .load()
    )


def has_run(query: StreamingQuery, batches: int) -> bool:
    failure = query.exception()
    if failure is not None:
        raise failure
    return query.lastProgress is not None and int(query.lastProgress["batchId"]) + 1 >= batches


def test_everything_comes_out_once_although_a_broker_is_killed(
    spark: SparkSession, cluster: KafkaCluster, tmp_path: Path
) -> None:
    servers = cluster.bootstrap_servers
    config = own_config(commands_at_once=100)
    commands = made_commands(COMMANDS)
    with BlockingClient(servers) as client:
        create(client)
        client.run(ensure_topics(client.cluster, config.topics))
        assert_replicated(client, config.topics.events)
        lake = str(tmp_path / "events")
        copying = (
            stream(spark, servers, TOPIC, RECORDS // 10)
            .select("key", "value")
            .writeStream.format("quire")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", COPY)
            .option("checkpointLocation", str(tmp_path / "copying"))
            .start()
        )
        archiving = (
            archive(stream(spark, servers, config.topics.events, COMMANDS // 5))
            .writeStream.foreachBatch(DeltaSink(lake, partition_by=["date"]))
            .option("checkpointLocation", str(tmp_path / "archiving"))
            .start()
        )
        supervisor = Supervisor(servers, config)
        for half in range(2):
            with BlockingClient(servers) as sender:
                send(sender, config.topics, commands[COMMANDS // 2 * half : COMMANDS // 2 * (half + 1)])
                fill(sender, range(RECORDS // 2 * half, RECORDS // 2 * (half + 1)))
            eventually(partial(has_run, copying, 5 * half + 2))
            eventually(partial(supervisor.has_done, client, COMMANDS // 2 * half + COMMANDS // 10))
            if not half:
                cluster.kill(1)
        cluster.start()
        eventually(partial(supervisor.has_done, client, COMMANDS))
        supervisor.stop()
        assert_every_command_was_carried_out_once(client, config.topics)
        for query in (copying, archiving):
            query.processAllAvailable()
            query.stop()
        copied = sorted(int(record.value or b"") for _, record in records(client, COPY))
        assert copied == list(range(RECORDS))
    checked = samples("inventory", "check", "--events", config.topics.events, "--lake", lake, "--json", servers=servers)
    report = json.loads(checked.stdout)
    assert (checked.returncode, report["agrees"], report["events_not_in_lake"]) == (0, True, 0), report


def assert_replicated(client: BlockingClient, topic: str) -> None:
    """The brokers' default applies, because the inventory's topics name no replication factor."""
    client.run(client.cluster.refresh([topic]))
    partitions = client.cluster.metadata.topics[topic].partitions.values()
    assert {len(partition.replicas) for partition in partitions} == {3}
    entries = client.run(describe_configs(client.cluster, Resource(ResourceType.TOPIC, topic)))
    assert {entry.name: entry.value for entry in entries}["min.insync.replicas"] == "2"
