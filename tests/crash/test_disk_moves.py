"""A broker is killed at every stage of a move between its data directories, under load: nothing is lost or doubled."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from quire.testing import Cluster, WireConnection
from tests.wire.clients import WAIT_S

TOPIC = "t"
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
PATIENCE_S = 60
KILLS = 6


class Site:
    def __init__(self, cluster: Cluster, one: Path, two: Path) -> None:
        self.cluster = cluster
        settings = {"internal.segment.bytes": "100000", "file.delete.delay.ms": "1000"}
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=settings)])[TOPIC].result(WAIT_S)
        self.folders = [one, two] if (one / f"{TOPIC}-0").is_dir() else [two, one]
        self.producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.size": 50_000,
                "message.timeout.ms": PATIENCE_S * 1000,
                "log_level": 0,
            }
        )
        self.sent = 0
        self.acknowledged: list[int] = []

    def write(self, count: int) -> None:
        """Sends records, and serves their acknowledgements as far as they have come."""
        for _ in range(count):
            number = self.sent
            self.sent += 1

            def delivered(error: object, _message: object, number: int = number) -> None:
                assert error is None, error
                self.acknowledged.append(number)

            self.producer.produce(TOPIC, b"%08d" % number + bytes(500), partition=0, on_delivery=delivered)
        self.producer.poll(0.01)

    def move(self) -> None:
        topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])]
        wanted = AlterReplicaLogDir(path=str(self.folders[1]), topics=topics)
        with WireConnection(self.cluster.bootstrap_servers) as connection:
            answer = connection.call(AlterReplicaLogDirsRequest(dirs=[wanted]), 2, AlterReplicaLogDirsResponse)
        assert answer.results[0].partitions[0].error_code == ErrorCode.NONE

    def futures(self) -> list[Path]:
        return list(self.folders[1].glob(f"{TOPIC}-0.*-future"))

    def is_placed(self) -> bool:
        return (self.folders[1] / f"{TOPIC}-0").is_dir()

    def has_left(self) -> bool:
        return not (self.folders[0] / f"{TOPIC}-0").is_dir()

    def marks(self) -> int:
        return sum((folder / f"{TOPIC}-0" / "quire-move").exists() for folder in self.folders)

    def read(self) -> list[int]:
        """The numbers of all records, in order."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": "check", "log_level": 0})
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), WAIT_S)
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            found: list[int] = []
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < end and time.monotonic() < deadline:
                for message in consumer.consume(1000, 1.0):
                    assert message.error() is None
                    value = message.value()
                    assert value is not None
                    found.append(int(value[:8]))
            return found
        finally:
            consumer.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    one, two = tmp_path / "one", tmp_path / "two"
    with Cluster(data_dir=f"{one},{two}", config={RATE: 2_000_000}) as cluster:
        yield Site(cluster, one, two)


STAGES: dict[str, Callable[[Site], bool]] = {
    "copying": lambda site: bool(site.futures()),
    "marks": lambda site: site.marks() > 0,
    "placed": lambda site: site.is_placed(),
    "left": lambda site: site.has_left(),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_broker_that_is_killed_during_a_move_loses_nothing_and_finishes_it(site: Site, stage: str) -> None:
    site.write(2_000)
    site.producer.flush(PATIENCE_S)
    site.move()
    deadline = time.monotonic() + PATIENCE_S
    while not STAGES[stage](site):
        assert time.monotonic() < deadline, f"it was never {stage}"
        site.write(1)
    site.cluster.kill()
    site.write(200)
    site.cluster.restart()
    deadline = time.monotonic() + PATIENCE_S
    while not (site.is_placed() and site.has_left() and not site.marks()):
        assert time.monotonic() < deadline, "the move does not end"
        site.write(1)
    assert site.producer.flush(PATIENCE_S) == 0
    assert site.acknowledged == list(range(site.sent))
    assert site.read() == site.acknowledged
    assert site.futures() == []


def test_a_broker_that_is_killed_again_and_again_finishes_the_move(site: Site) -> None:
    site.write(8_000)
    site.producer.flush(PATIENCE_S)
    site.move()
    for _ in range(KILLS):
        if site.has_left():
            break
        site.write(100)
        site.cluster.kill()
        site.cluster.restart()
    deadline = time.monotonic() + PATIENCE_S
    while not (site.is_placed() and site.has_left() and not site.marks()):
        assert time.monotonic() < deadline, "the move does not end"
        site.write(1)
    assert site.producer.flush(PATIENCE_S) == 0
    assert site.read() == site.acknowledged == list(range(site.sent))
