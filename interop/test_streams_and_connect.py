"""Programs that people run on Kafka, unchanged on Quire: Kafka Streams, exactly once, and a Kafka Connect worker."""

from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from interop.apache_kafka import ApacheKafka
from interop.scenarios import Server, create, wait_until
from quire.testing import Cluster

KEYS = 20
ROUNDS = 300
COUNT = Path(__file__).parent / "java" / "ExactlyOnceCount.java"


def committed(address: str, topic: str) -> list[tuple[str, str]]:
    """Keys and values of partition 0 that readers of committed records see, up to its end now."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "look", "isolation.level": "read_committed", "log_level": 0}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen: list[tuple[str, str]] = []
    while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
        message = consumer.poll(5)
        if message is None:
            break
        seen.append(((message.key() or b"").decode(), (message.value() or b"").decode()))
    consumer.close()
    return seen


def test_a_count_of_kafka_streams_that_is_killed_and_started_again_counts_everything_once(
    kafka: ApacheKafka, quire: Cluster, tmp_path: Path
) -> None:
    address = quire.bootstrap_servers
    server = Server(kafka, address, tmp_path)
    create(server, "words")
    create(server, "counts")
    producer = Producer({"bootstrap.servers": address, "log_level": 0})

    def say(rounds: int) -> None:
        for _ in range(rounds):
            for key in range(KEYS):
                producer.produce("words", "x", f"word {key}")
        assert producer.flush(30) == 0

    def last_counts() -> dict[str, str]:
        return dict(committed(address, "counts"))

    def more_than(before: int) -> Callable[[], bool]:
        return lambda: len(committed(address, "counts")) > before

    state = tmp_path / "state"
    for number in range(3):
        say(ROUNDS // 3)
        # Killed in the middle of its work.
        with kafka.program(tmp_path, str(COUNT), address, str(state), killed=True):
            wait_until(more_than(len(committed(address, "counts"))), f"it counts, {number}")
    say(1)
    with kafka.program(tmp_path, str(COUNT), address, str(state)):
        total = str(ROUNDS + 1)
        wait_until(lambda: set(last_counts().values()) == {total}, "everything is counted")
    counts: dict[str, int] = {}
    for key, value in committed(address, "counts"):
        assert int(value) > counts.get(key, 0), f"{key} was counted back, from {counts[key]} to {value}"
        counts[key] = int(value)
    assert counts == {f"word {key}": ROUNDS + 1 for key in range(KEYS)}


WORKER = """bootstrap.servers={address}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=500
listeners=HTTP://127.0.0.1:0
plugin.discovery=service_load
"""
SOURCE = """name=lines-in
connector.class=org.apache.kafka.connect.file.FileStreamSourceConnector
tasks.max=1
file={folder}/in.txt
topic=lines
"""
SINK = """name=lines-out
connector.class=org.apache.kafka.connect.file.FileStreamSinkConnector
tasks.max=1
file={folder}/out.txt
topics=lines
"""


def test_a_connect_worker_carries_a_file_through_a_topic_into_another_file(
    kafka: ApacheKafka, quire: Cluster, tmp_path: Path
) -> None:
    settings = {"address": quire.bootstrap_servers, "folder": tmp_path}
    for name, text in (("worker", WORKER), ("source", SOURCE), ("sink", SINK)):
        (tmp_path / f"{name}.properties").write_text(text.format(**settings))
    create(Server(kafka, quire.bootstrap_servers, tmp_path), "lines")
    lines = [f"line {number}" for number in range(2000)]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines[:1000]))
    files = [str(tmp_path / f"{name}.properties") for name in ("worker", "source", "sink")]
    worker = "org.apache.kafka.connect.cli.ConnectStandalone"
    with kafka.program(tmp_path, worker, *files):
        wait_until(lambda: written(tmp_path) == lines[:1000], "the first half has come through")
    with (tmp_path / "in.txt").open("a") as file:
        file.writelines(f"{line}\n" for line in lines[1000:])
    with kafka.program(tmp_path, worker, *files):
        wait_until(lambda: written(tmp_path) == lines, "a restarted worker continues where it was")


def written(folder: Path) -> list[str]:
    path = folder / "out.txt"
    return path.read_text().splitlines() if path.exists() else []
