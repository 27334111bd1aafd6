"""Transactions over brokers of both kinds, whichever kind coordinates them, and whichever kind is the controller."""

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from interop.apache_kafka import ApacheKafka
from interop.mixed_cluster import MixedCluster, NodePlan, mixed_cluster
from tests.wire.clients import confluent_consumer, confluent_read

QUIRE, KAFKA = 1, 2
TOPIC = "both"
TRANSACTIONAL_IDS = 12
"""Enough that each kind coordinates some: the internal topic has eight partitions on the two brokers."""


@pytest.fixture(params=["quire", "kafka"])
def cluster(request: pytest.FixtureRequest, kafka: ApacheKafka, tmp_path: Path) -> Iterator[MixedCluster]:
    """Two brokers of which the named kind is the controller."""
    roles = {request.param: "broker,controller"}
    plans = [NodePlan(id_, kind, roles.get(kind, "broker")) for id_, kind in ((QUIRE, "quire"), (KAFKA, "kafka"))]
    with mixed_cluster(MixedCluster(kafka, tmp_path, plans)) as running:
        yield running


def test_committed_transactions_are_whole_and_aborted_ones_are_not_seen(cluster: MixedCluster) -> None:
    cluster.create_topic(TOPIC, at=cluster.nodes[KAFKA], partitions=4)
    leaders = cluster.agree_on(TOPIC)
    assert set(leaders.values()) == {QUIRE, KAFKA}
    for number in range(TRANSACTIONAL_IDS):
        write(cluster.bootstrap_servers, f"writer-{number}", list(leaders))
    coordinators = cluster.agree_on("__transaction_state")
    assert set(coordinators.values()) == {QUIRE, KAFKA}
    expected = {b"writer-%d committed" % number for number in range(TRANSACTIONAL_IDS)}
    for partition in leaders:
        assert committed(cluster.bootstrap_servers, partition) == expected


def committed(servers: str, partition: int) -> set[bytes | None]:
    consumer = confluent_consumer(servers, **{"isolation.level": "read_committed"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0)])
        return {message.value() for message in confluent_read(consumer, TRANSACTIONAL_IDS)}
    finally:
        consumer.close()


def write(servers: str, transactional_id: str, partitions: list[int]) -> None:
    """One transaction that is aborted and one that is committed, each with a record in every partition."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": transactional_id})
    producer.init_transactions(30)
    for end in ("aborted", "committed"):
        producer.begin_transaction()
        for partition in partitions:
            producer.produce(TOPIC, f"{transactional_id} {end}".encode(), partition=partition)
        if end == "committed":
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)


def test_groups_are_coordinated_by_both_kinds(cluster: MixedCluster) -> None:
    cluster.create_topic(TOPIC, at=cluster.nodes[QUIRE], partitions=4)
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(40):
        producer.produce(TOPIC, b"%d" % number, partition=number % 4)
    assert producer.flush(30) == 0
    for number in range(8):
        for expected in (40, 0):
            assert read_as(cluster.bootstrap_servers, f"group-{number}", expected) == expected
    assert set(cluster.agree_on("__consumer_offsets").values()) == {QUIRE, KAFKA}


def read_as(servers: str, group: str, wanted: int) -> int:
    """Reads as a group until it has the wanted records, or has reached all ends; then commits."""
    settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings | {"enable.auto.commit": "false", "enable.partition.eof": "true"})
    consumer.subscribe([TOPIC])
    read = 0
    ends: set[int | None] = set()
    try:
        while len(ends) < 4:
            message = consumer.poll(30)
            assert message is not None, f"{group} got only {read} of {wanted} records"
            error = message.error()
            if error is None:
                read += 1
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                ends.add(message.partition())
        if wanted:
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return read
