"""Producer and consumer against a real node that refuses, delays and is killed."""

from collections.abc import Iterator

import pytest

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.consumer import BEGINNING, Consumer
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import Compression
from quire.testing import Cluster

RECORDS = 3000
PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def write(client: BlockingClient, topic: str, producer: Producer, first: int, count: int) -> None:
    for number in range(first, first + count):
        producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    client.loop.run_once(0)


def read(client: BlockingClient, topic: str, count: int) -> list[list[int]]:
    """What each partition holds, in the order it is read."""
    consumer = Consumer(client.cluster)
    client.run(consumer.assign({TopicPartition(topic, index): BEGINNING for index in range(PARTITIONS)}))
    found: list[list[int]] = [[] for _ in range(PARTITIONS)]
    while sum(map(len, found)) < count:
        client.loop.run_until(consumer.arrival(), timeout_ms=30_000)
        for fetched in consumer.poll():
            for record in fetched.records():
                assert record.offset == len(found[fetched.topic_partition.partition])
                found[fetched.topic_partition.partition].append(int(record.value or b"-1"))
    consumer.close()
    return found


def begin(client: BlockingClient, topic: str, config: ProducerConfig) -> Producer:
    client.run(create_topics(client.cluster, [NewTopic(topic, PARTITIONS, 1)]))
    producer = Producer(client.cluster, config)
    client.run(producer.prepare(topic))
    return producer


def finish(client: BlockingClient, producer: Producer) -> None:
    client.loop.run_until(producer.flush(), timeout_ms=60_000)
    assert producer.first_error is None
    assert producer.delivered_records == RECORDS


EXPECTED = [list(range(index, RECORDS, PARTITIONS)) for index in range(PARTITIONS)]


@pytest.mark.parametrize("compression", list(Compression))
def test_everything_written_is_read_in_order(cluster: Cluster, compression: Compression) -> None:
    topic = f"plain-{compression.name.lower()}"
    with BlockingClient(cluster.bootstrap_servers) as client:
        producer = begin(client, topic, ProducerConfig(compression=compression))
        write(client, topic, producer, 0, RECORDS)
        finish(client, producer)
        assert read(client, topic, RECORDS) == EXPECTED


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "UNKNOWN_TOPIC_OR_PARTITION"])
def test_refusals_and_delays_cost_time_and_nothing_else(cluster: Cluster, error: str) -> None:
    topic = f"refused-{error.lower()}"
    with BlockingClient(cluster.bootstrap_servers) as client:
        producer = begin(client, topic, ProducerConfig(batch_bytes=500, linger_ms=0))
        cluster.delay("Produce", 5)
        for first in range(0, RECORDS, 500):
            cluster.fail_next("Produce", error, 2)
            write(client, topic, producer, first, 500)
        finish(client, producer)
        cluster.fail_next("Fetch", "NOT_LEADER_OR_FOLLOWER", 3)
        assert read(client, topic, RECORDS) == EXPECTED
    cluster.clear_faults()


def test_a_node_killed_and_restarted_under_load_has_every_record_once_and_in_order() -> None:
    with Cluster() as cluster, BlockingClient(cluster.bootstrap_servers) as client:
        producer = begin(client, "killed", ProducerConfig(batch_bytes=500, linger_ms=0))
        for first in range(0, RECORDS, 500):
            write(client, "killed", producer, first, 500)
            if first in (1000, 2000):
                cluster.kill()
                cluster.restart()
        finish(client, producer)
        assert read(client, "killed", RECORDS) == EXPECTED
