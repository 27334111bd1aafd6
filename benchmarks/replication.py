"""`python -m benchmarks.replication`: three replicas on three nodes of Quire, beside three of Apache Kafka.

    python -m benchmarks.replication [--only "one record"] [--gigabytes 2] [--quire-only] [--json FILE]

Every topic has a replication factor of 3 and min.insync.replicas of 2, internal topics too. The clusters run one after
the other. CPU is that of all nodes together, without the client. Both are warmed up first, and each load is the median
of several rounds.

Goals, beside Apache Kafka: produce 1 KB idempotent at least 4x at 1/6 of the CPU, with lz4 2x at 1/4; one record at
0.8x (p50) and 0.4x (p99) at 1/3 of the CPU; produce to consume at 0.8x and 0.5x; transactions 5x at 1/8 of the CPU. A
leader that is killed stops writes for less than 1 s (2 s if it was the active controller too), one that is stopped for
less than 0.3 s, if the client retries every 100 ms; with default settings of the clients the figures are only reported.
A follower that was down catches up at least as fast, and the p99 of writes at most doubles meanwhile. Idle, three nodes
take at most 130 MB, and 200 MB after the load.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import failover, loads
from benchmarks.catch_up import catch_up
from benchmarks.clusters import (
    NODES,
    ApacheKafkaNodes,
    QuireNodes,
    ThreeNodes,
    bootstrap,
    cpu_s,
    create_topic,
    resident_mb,
)
from benchmarks.compare import apache_kafka_jars, subfolder
from benchmarks.machine import write_back

ROUNDS = 3
RECORDS = 200_000
SIZE = 1_000
SINGLE_RECORDS = 2_000
TRANSACTIONS = 200
GIGABYTES = 2.0
ALL: dict[str, object] = {"acks": "all", "enable.idempotence": True}
LZ4: dict[str, object] = {**ALL, "compression.type": "lz4"}
WARM_UP_S = 3.0

Figures = dict[str, list[float]]
"""Unit -> the value of each round."""
Measure = Callable[[ThreeNodes], Figures]


def volume(cluster: ThreeNodes, settings: dict[str, object]) -> Figures:
    figures: Figures = {"MB/s": [], "CPU-s per GB": []}
    for _ in range(ROUNDS):
        write_back()
        before_s = cpu_s(cluster)
        done = loads.produce(bootstrap(cluster), "load", RECORDS, SIZE, settings)
        figures["MB/s"].append(done.megabytes_per_second)
        figures["CPU-s per GB"].append((cpu_s(cluster) - before_s) / (done.bytes / 1e9))
    return figures


def latency(cluster: ThreeNodes, load: Callable[[], loads.Latency]) -> Figures:
    figures: Figures = {"per s": [], "p50 ms": [], "p99 ms": [], "CPU ms each": []}
    for _ in range(ROUNDS):
        before_s, started = cpu_s(cluster), time.perf_counter()
        found = load()
        figures["per s"].append(found.count / (time.perf_counter() - started))
        figures["p50 ms"].append(found.p50_us / 1e3)
        figures["p99 ms"].append(found.p99_us / 1e3)
        figures["CPU ms each"].append((cpu_s(cluster) - before_s) / found.count * 1e3)
    return figures


def one_record(cluster: ThreeNodes) -> Figures:
    servers = bootstrap(cluster)
    return latency(cluster, lambda: loads.acknowledge_one_by_one(servers, "single", SINGLE_RECORDS, {"acks": "all"}))


def produce_to_consume(cluster: ThreeNodes) -> Figures:
    return latency(cluster, lambda: loads.produce_to_consume(bootstrap(cluster), "single", SINGLE_RECORDS))


def transactions(cluster: ThreeNodes) -> Figures:
    return latency(cluster, lambda: loads.transactions_of_one_record(bootstrap(cluster), "single", TRANSACTIONS))


def follower_catches_up(cluster: ThreeNodes, gigabytes: float) -> Figures:
    done = catch_up(cluster, "away", gigabytes)
    return {
        "MB/s": [done.megabytes_per_second],
        "s from its start to the first copied bytes": [done.first_copied_s],
        "produce p99 ms before": [done.before.p99_us / 1e3],
        "produce p99 ms during": [done.during.p99_us / 1e3],
        "produce p99, during / before": [done.during.p99_us / done.before.p99_us],
    }


def measures(gigabytes: float, jars: Path | None) -> dict[str, Measure]:
    """In the order in which they are taken: those that kill nodes come last."""
    retries, default = failover.librdkafka(failover.RETRIES_EVERY_100_MS), failover.librdkafka({})
    found: dict[str, Measure] = {
        "produce 1 KB, idempotent": lambda cluster: volume(cluster, ALL),
        "produce 1 KB, lz4, idempotent": lambda cluster: volume(cluster, LZ4),
        "produce 1 KB, acks=1": lambda cluster: volume(cluster, {"acks": 1}),
        "one record, acks=all": one_record,
        "produce to consume": produce_to_consume,
        "transactions of one record": transactions,
        "memory after the load": lambda cluster: {"MB": [resident_mb(cluster)]},
        "follower catches up": lambda cluster: follower_catches_up(cluster, gigabytes),
        "leader killed, no ack": lambda cluster: {"s": failover.leader_killed(cluster, "killed", retries)},
        "leader and active controller killed, no ack": lambda cluster: {
            "s": failover.leader_killed(cluster, "both", retries, is_controller=True)
        },
        "leader stopped, no ack": lambda cluster: {"s": failover.leader_stopped(cluster, "stopped", retries)},
        "leader killed, librdkafka's defaults, no ack": lambda cluster: {
            "s": failover.leader_killed(cluster, "defaults", default)
        },
    }
    if jars is not None:
        java = failover.java(jars)
        found["leader killed, Java's defaults, no ack"] = lambda cluster: {
            "s": failover.leader_killed(cluster, "java", java)
        }
    return found


@dataclass(slots=True)
class Column:
    """The results on one cluster, by measure."""

    name: str
    figures: dict[str, Figures]


def measure(cluster: ThreeNodes, chosen: dict[str, Measure]) -> Column:
    column = Column(cluster.name, {})
    _tell(cluster, "starts", {"s": [cluster.start()]})
    column.figures["memory idle"] = {"MB": [resident_mb(cluster)]}
    _warm_up(cluster)
    for name, take in chosen.items():
        column.figures[name] = take(cluster)
        _tell(cluster, name, column.figures[name])
    return column


def _warm_up(cluster: ThreeNodes) -> None:
    create_topic(cluster, "load")
    create_topic(cluster, "single")
    loads.produce(bootstrap(cluster), "load", RECORDS, SIZE, ALL)
    loads.acknowledge_one_by_one(bootstrap(cluster), "single", SINGLE_RECORDS, ALL)
    time.sleep(WARM_UP_S)


def _tell(cluster: ThreeNodes, name: str, figures: Figures) -> None:
    shown = ", ".join(f"{_shown(values)} {unit}" for unit, values in figures.items())
    print(f"  {cluster.name:13} {name}: {shown}", file=sys.stderr)


def _shown(values: list[float]) -> str:
    """The median, and the extremes of several rounds."""
    extremes = f" ({min(values):.3g} to {max(values):.3g})" if len(values) > 1 else ""
    return f"{median(values):.3g}{extremes}"


def table(columns: list[Column]) -> str:
    lines = [f"| measure, {len(NODES)} nodes | " + " | ".join(column.name for column in columns) + " | ratio |"]
    lines.append("|---|" + "---|" * (len(columns) + 1))
    for name, figures in columns[0].figures.items():
        for unit in figures:
            rounds = [column.figures[name][unit] for column in columns]
            values = [median(each) for each in rounds]
            ratio = f"{values[0] / values[1]:.2f}" if len(values) == 2 and values[1] else ""
            lines.append(f"| {name}: {unit} | " + " | ".join(map(_shown, rounds)) + f" | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.replication", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="only the measures whose name contains this")
    parser.add_argument("--gigabytes", type=float, default=GIGABYTES, help="what the follower misses (default 2)")
    parser.add_argument("--quire-only", action="store_true", help="leave Apache Kafka and its client out")
    parser.add_argument("--json", type=Path, help="also write the figures of every round to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quire-replication-") as name:
        folder = Path(name)
        clusters: list[ThreeNodes] = [QuireNodes(subfolder(folder, "quire"))]
        jars = None if arguments.quire_only else apache_kafka_jars()
        if jars is not None:
            clusters.append(ApacheKafkaNodes(subfolder(folder, "kafka"), jars, replicas=len(NODES)))
        taken = measures(arguments.gigabytes, jars)
        chosen = {name: take for name, take in taken.items() if arguments.only in name}
        columns: list[Column] = []
        for cluster in clusters:
            try:
                columns.append(measure(cluster, chosen))
            finally:
                cluster.stop()
    print(table(columns))
    if arguments.json:
        arguments.json.write_text(json.dumps({column.name: column.figures for column in columns}, indent=1))


if __name__ == "__main__":
    main()
