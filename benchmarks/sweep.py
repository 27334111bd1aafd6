"""`python -m benchmarks.sweep`: what a request costs as partitions, segments and connections grow.

Goal: no growth. Each table has one row per size, the same load in every row, and the broker's CPU time per request;
also the memory of idle connections and the start time of a node with many partitions.
"""

import socket
import tempfile
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import loads
from benchmarks.brokers import Quire
from benchmarks.compare import subfolder

REQUESTS = 3000


def cpu_us_per_request(broker: Quire, topic: str) -> tuple[float, float]:
    """CPU of one produce round trip, and its median time."""
    loads.acknowledge_one_by_one(broker.bootstrap, topic, REQUESTS // 10, {"acks": 1})
    before = broker.cpu()
    seen = loads.acknowledge_one_by_one(broker.bootstrap, topic, REQUESTS, {"acks": 1})
    return broker.cpu().since(before).total_s * 1e6 / REQUESTS, seen.p50_us


def create(broker: Quire, name: str, partitions: int, config: dict[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic(name, partitions, 1, config=config or {})
    for future in admin.create_topics([topic], request_timeout=120).values():
        future.result(120)


def sweep_partitions(broker: Quire) -> None:
    print("| partitions on the node | produce p50 us | CPU us per request |\n|---|---|---|")
    create(broker, "measured", 1)
    total = 1
    for number, more in enumerate((0, 99, 900, 1000)):
        if more:
            create(broker, f"others-{number}", more)
            total += more
        cost, p50_us = cpu_us_per_request(broker, "measured")
        print(f"| {total} | {p50_us:.0f} | {cost:.0f} |", flush=True)


def sweep_segments(broker: Quire) -> None:
    print("\n| segments in the partition | produce p50 us | CPU us per request |\n|---|---|---|")
    create(broker, "segments", 1, {"segment.bytes": str(1 << 20)})
    for megabytes in (1, 50, 200):
        loads.produce(broker.bootstrap, "segments", megabytes * 1000, 1000, {"acks": 1, "batch.size": 100_000})
        cost, p50_us = cpu_us_per_request(broker, "segments")
        segments = len(list((broker.folder / "data" / "segments-0").glob("*.log")))
        print(f"| {segments} | {p50_us:.0f} | {cost:.0f} |", flush=True)


def sweep_connections(broker: Quire) -> None:
    print("\n| idle connections | produce p50 us | CPU us per request | MB resident |\n|---|---|---|---|")
    idle: list[socket.socket] = []
    for count in (0, 100, 1000):
        idle += loads.open_connections("127.0.0.1", broker.port, count - len(idle))
        cost, p50_us = cpu_us_per_request(broker, "measured")
        print(f"| {count} | {p50_us:.0f} | {cost:.0f} | {broker.resident_bytes() / 1e6:.1f} |", flush=True)
    for connection in idle:
        connection.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="quire-sweep-") as name:
        broker = Quire(subfolder(Path(name), "quire"))
        broker.start()
        try:
            sweep_partitions(broker)
            sweep_segments(broker)
            sweep_connections(broker)
            broker.stop()
            print(f"\nstart with 2,000 partitions, to the first answer: {broker.start():.2f} s")
            print(f"resident with 2,000 partitions: {broker.resident_bytes() / 1e6:.1f} MB")
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
