"""`python -m benchmarks.replication`: three replicas on three nodes of Quire, beside three of Apache Kafka.

Every topic has a replication factor of 3 and min.insync.replicas of 2, internal topics too. The clusters run one after
the other. CPU is that of all nodes together, without the client. Both are warmed up first, and each load is the median
of several rounds.

Goals, beside Apache Kafka: produce 1 KB idempotent at least 4x at 1/6 of the CPU, with lz4 2x at 1/4; one record at
0.8x (p50) and 0.4x (p99) at 1/3 of the CPU; produce to consume at 0.8x and 0.5x; transactions 5x at 1/8 of the CPU. A
leader that is killed stops writes for less than 1 s, one that is stopped for less than 0.3 s. After the load three
nodes take at most 200 MB.
"""

import argparse
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import loads
from benchmarks.clusters import (
    NODES,
    ApacheKafkaNodes,
    QuireNodes,
    ThreeNodes,
    bootstrap,
    controller_of,
    cpu_s,
    resident_mb,
    wait_until_all_serve,
)
from benchmarks.compare import apache_kafka_jars, subfolder
from benchmarks.machine import write_back

ROUNDS = 3
RECORDS = 200_000
SIZE = 1_000
SINGLE_RECORDS = 2_000
TRANSACTIONS = 200
ALL = {"acks": "all", "enable.idempotence": True}
WARM_UP_S = 3.0
WATCHED_S = 20.0
"""How long writes continue after a leader was killed."""
RETRY_MS = 100

Figures = dict[str, str]


def create(cluster: ThreeNodes, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
    topic = NewTopic(name, partitions, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[name].result(30)
    while any(len(each.isrs) < 3 for each in admin.list_topics(name, timeout=10).topics[name].partitions.values()):
        time.sleep(0.05)


def leader_of(cluster: ThreeNodes, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
    leader: int = admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader
    return leader


def volume(cluster: ThreeNodes, topic: str, settings: dict[str, object]) -> str:
    rates, costs = [], []
    for _ in range(ROUNDS):
        write_back()
        before_s = cpu_s(cluster)
        done = loads.produce(bootstrap(cluster), topic, RECORDS, SIZE, settings)
        rates.append(done.megabytes_per_second)
        costs.append((cpu_s(cluster) - before_s) / (done.bytes / 1e9))
    return f"{median(rates):.0f} MB/s, {median(costs):.1f} CPU-s per GB"


def latency(cluster: ThreeNodes, load: Callable[[], loads.Latency]) -> str:
    rounds = []
    for _ in range(ROUNDS):
        before_s = cpu_s(cluster)
        found = load()
        rounds.append((found.p50_us, found.p99_us, (cpu_s(cluster) - before_s) / found.count * 1e6))
    p50, p99, cpu = (median(each) for each in zip(*rounds, strict=True))
    return f"p50 {p50 / 1e3:.2f}, p99 {p99 / 1e3:.2f} ms, {cpu / 1e3:.2f} ms of CPU"


def longest_gap(cluster: ThreeNodes, topic: str, fault: Callable[[], None]) -> float:
    """The longest time between two acknowledgements while a client writes, retrying every 100 ms."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap(cluster),
            **ALL,
            "linger.ms": 0,
            "retry.backoff.ms": RETRY_MS,
            "retry.backoff.max.ms": RETRY_MS,
            "topic.metadata.refresh.fast.interval.ms": RETRY_MS,
            "reconnect.backoff.ms": RETRY_MS,
            "reconnect.backoff.max.ms": RETRY_MS,
            "log_level": 0,
        }
    )
    started = last = time.perf_counter()
    gap = 0.0
    struck: threading.Thread | None = None
    while time.perf_counter() - started < WATCHED_S:
        if struck is None and time.perf_counter() - started > 1:
            struck = threading.Thread(target=fault)
            struck.start()
            gap = 0.0
        acknowledged: list[object] = []
        producer.produce(topic, b"x" * 100, on_delivery=lambda error, _, told=acknowledged: told.append(error))
        while not acknowledged:
            producer.poll(0.01)
        if acknowledged[0] is None:
            now = time.perf_counter()
            gap, last = max(gap, now - last), now
    assert struck is not None
    struck.join()
    return gap


def killed(cluster: ThreeNodes, topic: str, *, controller: bool) -> str:
    """The leader of a new topic is killed; `controller` says whether it is the active controller too."""
    gaps = []
    for number in range(ROUNDS):
        name = f"{topic}-{number}"
        while True:
            create(cluster, name)
            leader = leader_of(cluster, name)
            if (leader == controller_of(cluster)) == controller:
                break
            name += "x"

        def kill(node: int = leader) -> None:
            cluster.kill(node)

        gaps.append(longest_gap(cluster, name, kill))
        cluster.start_again(leader)
        wait_until_all_serve(cluster)
    return f"{median(gaps):.2f} s ({min(gaps):.2f} to {max(gaps):.2f})"


def stopped(cluster: ThreeNodes, topic: str) -> str:
    gaps = []
    for number in range(ROUNDS):
        name = f"{topic}-{number}"
        create(cluster, name)
        leader = leader_of(cluster, name)
        pid = cluster.pid(leader)

        def stop(process: int = pid) -> None:
            os.kill(process, signal.SIGTERM)

        gaps.append(longest_gap(cluster, name, stop))
        cluster.start_again(leader)
        wait_until_all_serve(cluster)
    return f"{median(gaps):.2f} s ({min(gaps):.2f} to {max(gaps):.2f})"


def measure(cluster: ThreeNodes) -> Figures:
    figures: Figures = {}
    cluster.start()
    figures["memory, idle"] = f"{resident_mb(cluster):.0f} MB"
    create(cluster, "load")
    create(cluster, "single")
    servers = bootstrap(cluster)
    loads.produce(servers, "load", RECORDS, SIZE, ALL)  # the warm-up
    loads.acknowledge_one_by_one(servers, "single", SINGLE_RECORDS, ALL)
    time.sleep(WARM_UP_S)
    figures["produce 1 KB, idempotent"] = volume(cluster, "load", ALL)
    figures["produce 1 KB, lz4, idempotent"] = volume(cluster, "load", {**ALL, "compression.type": "lz4"})
    figures["produce 1 KB, acks=1"] = volume(cluster, "load", {"acks": 1})
    figures["one record, acks=all"] = latency(
        cluster, lambda: loads.acknowledge_one_by_one(servers, "single", SINGLE_RECORDS, {"acks": "all"})
    )
    figures["produce to consume"] = latency(
        cluster, lambda: loads.produce_to_consume(servers, "single", SINGLE_RECORDS)
    )
    figures["transactions of one record"] = latency(
        cluster, lambda: loads.transactions_of_one_record(servers, "single", TRANSACTIONS)
    )
    figures["memory, after the load"] = f"{resident_mb(cluster):.0f} MB"
    figures["leader killed: longest gap between acks"] = killed(cluster, "killed", controller=False)
    figures["the same, leader and active controller"] = killed(cluster, "both", controller=True)
    figures["leader stopped: longest gap between acks"] = stopped(cluster, "stopped")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.replication", description=__doc__.split("\n")[0])
    parser.add_argument("--quire-only", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quire-replication-") as name:
        folder = Path(name)
        clusters: list[ThreeNodes] = [QuireNodes(subfolder(folder, "quire"))]
        jars = None if arguments.quire_only else apache_kafka_jars()
        if jars is not None:
            clusters.append(ApacheKafkaNodes(subfolder(folder, "kafka"), jars, replicas=3))
        columns: list[Figures] = []
        for cluster in clusters:
            try:
                columns.append(measure(cluster))
            finally:
                cluster.stop()
        print(f"| measure, {len(NODES)} nodes | {' | '.join(cluster.name for cluster in clusters)} |")
        print(f"|---|{'---|' * len(clusters)}")
        for measured in columns[0]:
            print(f"| {measured} | {' | '.join(column[measured] for column in columns)} |")


if __name__ == "__main__":
    main()
