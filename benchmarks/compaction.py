"""`python -m benchmarks.compaction`: compacting 1 GB of 1 KB records, nine of ten of which are out of date.

Both sides are measured from outside, in the same way: the topic is filled while `min.compaction.lag.ms` prevents
cleaning. Then the lag is removed, and cleaning is complete when `cleaner-offset-checkpoint` has reached the active
segment. A second topic is compacted while a producer waits for each acknowledgement before it sends the next record,
which shows how compaction affects latency.
"""

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from benchmarks import loads
from benchmarks.brokers import ApacheKafka, ProcessBroker, Quire
from benchmarks.compare import apache_kafka_jars, subfolder
from benchmarks.machine import warm_memory, write_back

RECORDS = 1_000_000
KEYS = 100_000
SIZE = 1_000
NOT_YET_MS = 24 * 3600 * 1000
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(100 << 20), "min.compaction.lag.ms": str(NOT_YET_MS)}
LOOK_SOON = {"log.cleaner.backoff.ms": "100"}
"""The only setting that is not the default, on both sides: how long an idle cleaner sleeps."""
PATIENCE_S = 120


@dataclass(slots=True)
class Seen:
    seconds: float
    extra_bytes: int


def create(broker: ProcessBroker, name: str, config: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1, config=config)]).values():
        future.result(30)


def fill(broker: ProcessBroker, topic: str) -> None:
    """Every key ten times, in the same order each time, so that the last tenth of the log remains."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "acks": 1})
    value = b"x" * SIZE
    for number in range(RECORDS):
        while True:
            try:
                producer.produce(topic, value, key=b"%09d" % (number % KEYS))
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush(120)


def let_loose(broker: ProcessBroker, topic: str) -> None:
    change = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def is_clean(data: Path, topic: str) -> bool:
    active = max(int(path.stem) for path in (data / f"{topic}-0").glob("*.log"))
    try:
        lines = (data / "cleaner-offset-checkpoint").read_text().splitlines()
    except FileNotFoundError:
        return False
    return f"{topic} 0 {active}" in lines


def compact(broker: ProcessBroker, topic: str) -> Seen:
    """Allows cleaning and waits until it is complete."""
    data = broker.folder / "data"
    before = highest = broker.resident_bytes()
    started = time.perf_counter()
    let_loose(broker, topic)
    while not is_clean(data, topic):
        if time.perf_counter() - started > PATIENCE_S:
            raise TimeoutError(f"{broker.name} has not compacted {topic} within {PATIENCE_S} s")
        highest = max(highest, broker.resident_bytes())
        time.sleep(0.02)
    return Seen(time.perf_counter() - started, highest - before)


def p99_while_compacting(broker: ProcessBroker, topic: str) -> float:
    samples: list[float] = []
    done = threading.Event()

    def produce() -> None:
        while not done.is_set():
            samples.append(loads.acknowledge_one_by_one(broker.bootstrap, "others", 500, {"acks": 1}).p99_us)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        compact(broker, topic)
    finally:
        done.set()
        thread.join()
    return sorted(samples)[len(samples) // 2]


def measure(broker: ProcessBroker, folder: Path) -> None:
    broker.start()
    try:
        create(broker, "others", {})
        for topic in ("alone", "beside-others"):
            create(broker, topic, COMPACTED)
            fill(broker, topic)
        write_back()
        warm_memory(folder)
        seen = compact(broker, "alone")
        loads.acknowledge_one_by_one(broker.bootstrap, "others", 1000, {"acks": 1})
        p99_us = loads.acknowledge_one_by_one(broker.bootstrap, "others", 3000, {"acks": 1}).p99_us
        busy_p99_us = p99_while_compacting(broker, "beside-others")
        speed = RECORDS * SIZE / seen.seconds / 1e6
        print(
            f"| {broker.name} | {speed:.0f} | {seen.extra_bytes / 1e6:.0f} | {p99_us:.0f} | {busy_p99_us:.0f} "
            f"| {busy_p99_us / p99_us:.1f}x |",
            flush=True,
        )
    finally:
        broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.compaction", description=__doc__.split("\n")[0])
    parser.add_argument("--quire-only", action="store_true", help="leave Apache Kafka out")
    arguments = parser.parse_args()
    print("| compacting 1 GB | MB/s | MB of memory on top | ack p99 us before | ack p99 us during | |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="quire-compaction-") as name:
        folder = Path(name)
        measure(Quire(subfolder(folder, "quire"), LOOK_SOON), folder)
        jars = None if arguments.quire_only else apache_kafka_jars()
        if jars is not None:
            measure(ApacheKafka(subfolder(folder, "kafka"), jars, LOOK_SOON), folder)


if __name__ == "__main__":
    main()
