"""`python -m benchmarks.scale`: 20,000 replicas on three nodes of Quire, beside three of Apache Kafka.

    python -m benchmarks.scale [--partitions 6667] [--quire-only] [--json FILE]

6,667 partitions with three replicas each. Goals: created within 30 s, a broker is back within 10 s, its leaderships
(about 2,200) have moved 2 s after it was killed, and a node takes at most 200 MB and, idle, 5 % of a core.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.clusters import (
    NODES,
    ApacheKafkaNodes,
    QuireNodes,
    ThreeNodes,
    bootstrap,
    controller_of,
    cpu_s,
    resident_mb,
    until,
)
from benchmarks.compare import apache_kafka_jars, subfolder

PARTITIONS = 6_667
PARTITIONS_OF_A_TOPIC = 667
IDLE_S = 20.0
QUIET_SHARE = 0.5
"""Below this share of a core, all nodes together have nothing left to do for what was requested of them."""
LIMIT_S = 600

Figures = dict[str, str]


def create(cluster: ThreeNodes, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
    for first in range(0, partitions, PARTITIONS_OF_A_TOPIC):
        name, count = f"scale-{first:06d}", min(PARTITIONS_OF_A_TOPIC, partitions - first)
        admin.create_topics([NewTopic(name, count, len(NODES))], request_timeout=60)[name].result(120)
    wait_until_quiet(cluster)


def wait_until_quiet(cluster: ThreeNodes) -> None:
    """A topic is created when its metadata is committed; the brokers create its logs after that."""

    def is_quiet() -> bool:
        before_s, started = cpu_s(cluster), time.perf_counter()
        time.sleep(0.5)
        return (cpu_s(cluster) - before_s) / (time.perf_counter() - started) < QUIET_SHARE

    until(is_quiet, limit_s=LIMIT_S)


def count(cluster: ThreeNodes, asked: int, *, led_by: int | None = None, isr_below: int = 0) -> int:
    """The partitions that a broker leads, or that have fewer replicas in sync, according to the node `asked`."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{cluster.ports[asked]}"})
    partitions = [each for topic in admin.list_topics(timeout=60).topics.values() for each in topic.partitions.values()]
    assert partitions
    return sum(each.leader in (led_by, -1) if led_by is not None else len(each.isrs) < isr_below for each in partitions)


def open_files(cluster: ThreeNodes) -> float:
    return sum(len(list(Path(f"/proc/{cluster.pid(node)}/fd").iterdir())) for node in NODES) / len(NODES)


def measure(cluster: ThreeNodes, partitions: int) -> Figures:
    cluster.start()
    started = time.perf_counter()
    create(cluster, partitions)
    figures = {f"{partitions:,} partitions with 3 replicas created": f"{time.perf_counter() - started:.1f} s"}
    before_s = cpu_s(cluster)
    time.sleep(IDLE_S)
    figures["idle: share of a core, each node"] = f"{(cpu_s(cluster) - before_s) / IDLE_S / len(NODES):.1%}"
    figures["memory of a node"] = f"{resident_mb(cluster) / len(NODES):.0f} MB"
    figures["open files of a node"] = f"{open_files(cluster):.0f}"
    active = controller_of(cluster)
    killed = next(node for node in NODES if node != active)
    led = count(cluster, active, led_by=killed)
    cluster.kill(killed)
    moved_s = until(lambda: count(cluster, active, led_by=killed) == 0, limit_s=LIMIT_S)
    figures[f"broker killed: its {led:,} leaderships have moved"] = f"{moved_s:.2f} s"
    cluster.start_again(killed)
    back_s = until(lambda: count(cluster, active, isr_below=len(NODES)) == 0, look_every_s=0.1, limit_s=LIMIT_S)
    figures["and it is in sync again after"] = f"{back_s:.1f} s"
    figures["memory of a node after that"] = f"{resident_mb(cluster) / len(NODES):.0f} MB"
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--quire-only", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quire-scale-") as name:
        folder = Path(name)
        clusters: list[ThreeNodes] = [QuireNodes(subfolder(folder, "quire"))]
        jars = None if arguments.quire_only else apache_kafka_jars()
        if jars is not None:
            clusters.append(ApacheKafkaNodes(subfolder(folder, "kafka"), jars, replicas=3))
        columns: list[Figures] = []
        for cluster in clusters:
            try:
                columns.append(measure(cluster, arguments.partitions))
            finally:
                cluster.stop()
            print(cluster.name, json.dumps(columns[-1], indent=2), flush=True)
        if arguments.json is not None:
            arguments.json.write_text(
                json.dumps({cluster.name: each for cluster, each in zip(clusters, columns, strict=True)}, indent=2)
            )


if __name__ == "__main__":
    main()
