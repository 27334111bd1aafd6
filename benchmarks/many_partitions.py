"""`python -m benchmarks.many_partitions`: how long a node with 10,000 small partitions takes to start, and its memory.

Goal: the first answer within 8 s and at most 250 MB, after a clean stop and after a kill.
"""

import argparse
import tempfile
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import Quire, wait_until_topics_can_be_created
from benchmarks.machine import write_back

PARTITIONS = 10_000
PARTITIONS_OF_A_TOPIC = 500
RECORDS = 3


def create_topics(bootstrap: str, count: int) -> list[str]:
    names = [f"many-{number:03d}" for number in range(count)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for name in names:
        # One by one: a request for all of them would be more than the controller writes at once.
        for future in admin.create_topics([NewTopic(name, PARTITIONS_OF_A_TOPIC, 1)]).values():
            future.result(60)
    return names


def fill(bootstrap: str, topics: list[str], records: int) -> None:
    """Records for each partition, every one in a batch of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100, "acks": 1})
    for _ in range(records):
        for topic in topics:
            for partition in range(PARTITIONS_OF_A_TOPIC):
                producer.produce(topic, b"x" * 100, partition=partition)
            producer.poll(0)
        left = producer.flush(120)
        if left:
            raise TimeoutError(f"{left} records were not acknowledged")


def restart(broker: Quire, after: str) -> None:
    write_back()
    took_s = broker.start()
    wait_until_topics_can_be_created(broker)
    cpu_s, resident_bytes = broker.cpu().total_s, broker.resident_bytes()
    print(f"| {after} | {took_s:.1f} | {cpu_s:.1f} | {resident_bytes / 1e6:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.many_partitions", description=__doc__.split("\n")[0])
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="in topics of 500 each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quire-many-") as name:
        broker = Quire(Path(name))
        try:
            broker.start()
            topics = create_topics(broker.bootstrap, arguments.partitions // PARTITIONS_OF_A_TOPIC)
            fill(broker.bootstrap, topics, RECORDS)
            print(f"| {arguments.partitions} partitions, started after | s to first answer | s of CPU | MB |")
            print("|---|---|---|---|")
            broker.stop()
            restart(broker, "a clean stop")
            # Every log must end beyond its recovery point.
            fill(broker.bootstrap, topics, 1)
            broker.kill()
            restart(broker, "a kill")
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
