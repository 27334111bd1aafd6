"""A node killed with -9 while clients write: everything it acknowledged is there afterwards, and nothing is damaged.

The page cache survives the process, so no flush is needed for this; what a power cut leaves is the simulator's subject.
"""

import struct
import threading
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import crc32c
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from quire.protocol.errors import ErrorCode
from quire.testing import Cluster, WireConnection
from tests.wire.batches import batch
from tests.wire.clients import WAIT_S, confluent_consumer, confluent_read
from tests.wire.raw import fetch, list_offset, produce, records_of

KILLS = 3
PARTITIONS = 3
ACKS_PER_ROUND = 3000
TOPIC = "under-load"
SMALL_SEGMENTS = {"log.segment.bytes": 1 << 20, "log.retention.ms": -1}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(config=SMALL_SEGMENTS) as running:
        yield running


class Load:
    """Writes numbered records to all partitions until told to stop, and remembers what was acknowledged."""

    def __init__(self, bootstrap: str, **settings: Any) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 60_000,
                "log_level": 0,
            }
            | settings
        )
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.acknowledged: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self.count = 0
        self.errors: list[Any] = []
        self._thread.start()

    def wait_for_more(self, count: int) -> None:
        with self._changed:
            wanted = self.count + count
            assert self._changed.wait_for(lambda: self.count >= wanted or self.errors, WAIT_S * 2), self.count
            assert not self.errors, self.errors

    def finish(self) -> None:
        self._stopping = True
        self._thread.join(WAIT_S)
        assert self._producer.flush(WAIT_S * 2) == 0
        assert not self.errors, self.errors

    def _run(self) -> None:
        number = 0
        while not self._stopping:
            partition = number % PARTITIONS
            value = b"%08d" % number + b"." * 500
            try:
                self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.01)
                continue
            self.sent[partition].append(value)
            number += 1
            self._producer.poll(0)
            while len(self._producer) > 5000 and not self._stopping:
                self._producer.poll(0.01)

    def _delivered(self, error: Any, message: Any) -> None:
        with self._changed:
            if error is not None:
                self.errors.append(error)
            else:
                self.acknowledged[message.partition()][message.offset()] = message.value()
                self.count += 1
            self._changed.notify_all()


def create_topic(bootstrap: str, name: str, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1)])[name].result(WAIT_S)


def stored_values(bootstrap: str, partition: int) -> list[tuple[int, bytes]]:
    consumer = confluent_consumer(bootstrap)
    try:
        _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(TOPIC, partition), timeout=WAIT_S)
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0)])
        return [(message.offset(), message.value()) for message in confluent_read(consumer, end)]
    finally:
        consumer.close()


def assert_whole(bootstrap: str, partition: int) -> None:
    """Every byte of the log belongs to a batch with the right checksum and the next offset."""
    with WireConnection(bootstrap) as connection:
        offset, end = 0, list_offset(connection, TOPIC, -1, partition=partition).offset
        while offset < end:
            found = fetch(connection, TOPIC, offset, partition=partition)
            assert found.error_code == ErrorCode.NONE
            records = records_of(found)
            position = 0
            while position + 12 <= len(records):
                base_offset, length = struct.unpack_from(">qi", records, position)
                if position + 12 + length > len(records):
                    break
                assert base_offset == offset
                (crc,) = struct.unpack_from(">I", records, position + 17)
                assert crc == crc32c.crc32c(records[position + 21 : position + 12 + length])
                (last_offset_delta,) = struct.unpack_from(">i", records, position + 23)
                offset += last_offset_delta + 1
                position += 12 + length


IDEMPOTENT = {"acks": "all", "enable.idempotence": True}
PLAIN = {"acks": 1, "enable.idempotence": False}


@pytest.mark.parametrize("settings", [IDEMPOTENT, PLAIN], ids=["idempotent", "acks=1"])
def test_every_acknowledged_record_is_served_after_each_kill(cluster: Cluster, settings: dict[str, Any]) -> None:
    kill_under_load(cluster, settings, KILLS)


@pytest.mark.soak
@pytest.mark.parametrize("settings", [IDEMPOTENT, PLAIN], ids=["idempotent", "acks=1"])
def test_every_acknowledged_record_is_served_after_many_kills(cluster: Cluster, settings: dict[str, Any]) -> None:
    kill_under_load(cluster, settings, 10 * KILLS)


def kill_under_load(cluster: Cluster, settings: dict[str, Any], kills: int) -> None:
    bootstrap = cluster.bootstrap_servers
    create_topic(bootstrap, TOPIC)
    load = Load(bootstrap, **settings)
    for _ in range(kills):
        load.wait_for_more(ACKS_PER_ROUND)
        cluster.kill()
        cluster.restart()
    load.wait_for_more(ACKS_PER_ROUND)
    load.finish()
    assert "Traceback" not in cluster.log()
    for partition in range(PARTITIONS):
        assert_whole(bootstrap, partition)
        stored = stored_values(bootstrap, partition)
        assert [offset for offset, _ in stored] == list(range(len(stored)))
        assert load.acknowledged[partition].items() <= dict(stored).items()
        if settings["enable.idempotence"]:
            assert [value for _, value in stored] == load.sent[partition], "each once, in the order sent"


def test_a_torn_tail_is_cut_and_said_aloud(cluster: Cluster) -> None:
    create_topic(cluster.bootstrap_servers, TOPIC, partitions=1)
    with WireConnection(cluster.bootstrap_servers) as connection:
        for number in range(10):
            assert produce(connection, TOPIC, batch([b"%d" % number])).base_offset == number
    cluster.kill()
    torn = batch([b"never finished"] * 50, base_offset=10)
    (segment,) = (cluster.data_dir / f"{TOPIC}-0").glob("*.log")
    with segment.open("ab") as file:
        file.write(torn[: len(torn) // 2])
    before = cluster.log_size
    cluster.restart()
    with WireConnection(cluster.bootstrap_servers) as connection:
        assert list_offset(connection, TOPIC, -1).offset == 10
        assert produce(connection, TOPIC, batch([b"next"])).base_offset == 10
    told = [line for line in cluster.log(before).splitlines() if f"{TOPIC}-0" in line]
    assert told, "cutting the log must not pass in silence"


def test_acknowledged_topics_survive_a_kill(cluster: Cluster) -> None:
    for number in range(KILLS):
        create_topic(cluster.bootstrap_servers, f"kept-{number}", partitions=2)
        create_topic(cluster.bootstrap_servers, f"dropped-{number}")
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.delete_topics([f"dropped-{number}"])[f"dropped-{number}"].result(WAIT_S)
        cluster.kill()
        cluster.restart()
        found = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=WAIT_S).topics
        expected = {f"kept-{each}": 2 for each in range(number + 1)}
        assert {name: len(topic.partitions) for name, topic in found.items()} == expected
