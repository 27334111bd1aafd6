"""flush.messages and flush.ms, changed while real clients write.

That acknowledged records survive a power cut cannot be shown on a running machine (the simulator and tests/node do
that). The tests read the checkpoint of recovery points, which a node with a short interval writes soon: it never
exceeds what is on disk.
"""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from quire.testing import Cluster
from tests.wire.clients import WAIT_S, Client, Confluent, Message, eventually
from tests.wire.conftest import MakeTopic
from tests.wire.test_retention_settings import alter

TOPIC = ConfigResource.Type.TOPIC
NEVER = str(2**63 - 1)


def test_every_client_is_acknowledged_and_reads_what_was_flushed_first(
    bootstrap: str, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(flush_messages="1")
    sent = [b"%d" % number for number in range(20)]
    assert client.produce(bootstrap, topic, [Message(value) for value in sent]) == list(range(20))
    assert [record.value for record in client.consume(bootstrap, topic, 20)] == sent


@pytest.mark.parametrize("acks", ["1", "all"])
def test_the_setting_changes_while_a_producer_is_at_work(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, acks: str
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": bootstrap, "acks": acks, "linger.ms": 0})
    delivered: list[tuple[int, object]] = []
    sent = 0
    for flush_messages in ("1", "7", NEVER, "1"):
        for _ in range(50):
            producer.produce(
                topic, b"%d" % sent, partition=0, on_delivery=lambda error, it: delivered.append((it.offset(), error))
            )
            producer.poll(0)
            sent += 1
        alter(admin, TOPIC, topic, flush_messages=flush_messages)
    assert producer.flush(WAIT_S) == 0
    assert delivered == [(offset, None) for offset in range(200)]
    found = Confluent().consume(bootstrap, topic, 200)
    assert [record.value for record in found] == [b"%d" % number for number in range(200)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config={"log.flush.offset.checkpoint.interval.ms": 20}) as running:
        yield running


@pytest.fixture
def change(cluster: Cluster) -> Callable[..., None]:
    """change(topic, **settings)"""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    return lambda topic, **settings: alter(admin, TOPIC, topic, **settings)


def recovery_point(cluster: Cluster, topic: str) -> int:
    """The recovery point in the node's checkpoint."""
    path = cluster.data_dir / "recovery-point-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def produce(cluster: Cluster, topic: str, count: int) -> None:
    Confluent().produce(cluster.bootstrap_servers, topic, [Message(b"v") for _ in range(count)])


def test_a_change_to_1_flushes_existing_and_new_records(cluster: Cluster, change: Callable[..., None]) -> None:
    produce(cluster, "counted", 5)
    produce(cluster, "other", 5)
    change("counted", flush_messages="1")
    eventually(lambda: recovery_point(cluster, "counted") == 5)
    produce(cluster, "counted", 3)
    eventually(lambda: recovery_point(cluster, "counted") == 8)
    change("counted", flush_messages="1000")
    produce(cluster, "counted", 3)
    change("other", flush_messages="1")
    eventually(lambda: recovery_point(cluster, "other") == 5)
    assert recovery_point(cluster, "counted") == 8


def test_flush_ms_works_by_itself(cluster: Cluster, change: Callable[..., None]) -> None:
    produce(cluster, "timed", 5)
    change("timed", flush_ms="50")
    eventually(lambda: recovery_point(cluster, "timed") == 5)
    produce(cluster, "timed", 2)
    eventually(lambda: recovery_point(cluster, "timed") == 7)
