"""`python -m benchmarks.cluster`: three nodes of Quire beside three of Apache Kafka.

Goals: all three answer within 1.2 s; after kill -9 of the active controller a topic is created within 1.5 s, and after
kill -9 of a broker it is fenced within 0.5 s; idle, three nodes take at most 130 MB and 3 % of a core; topics are
created at least as fast as by Kafka; with 10,000 partitions a node is back within 5 s and takes at most 200 MB.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import KafkaException, NewTopic

from benchmarks.clusters import (
    NODES,
    ApacheKafkaNodes,
    QuireNodes,
    ThreeNodes,
    bootstrap,
    brokers_seen_by,
    controller_of,
    cpu_s,
    resident_mb,
    until,
    wait_until_all_serve,
)
from benchmarks.compare import apache_kafka_jars, subfolder
from benchmarks.machine import write_back

IDLE_S = 10.0
TOPICS = 1_000
PARTITIONS = 10_000
PARTITIONS_OF_A_TOPIC = 500
ROUNDS = 7

Figures = dict[str, str]


def create(admin: AdminClient, names: list[str], partitions: int) -> None:
    for future in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        future.result(60)


def can_create(admin: AdminClient, name: str) -> bool:
    try:
        create(admin, [name], 1)
    except KafkaException as error:
        return "already exists" in str(error)
    return True


def controller_killed(cluster: ThreeNodes) -> float:
    """Until the next topic is created, with a client that knows the surviving nodes."""
    killed = controller_of(cluster)
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster, without=killed)})
    admin.list_topics(timeout=10)
    cluster.kill(killed)
    took_s = until(lambda: can_create(admin, "after-the-controller"))
    back(cluster, killed)
    return took_s


def broker_killed(cluster: ThreeNodes) -> float:
    """Until a surviving node no longer lists it."""
    active = controller_of(cluster)
    killed = next(node for node in NODES if node != active)
    cluster.kill(killed)
    took_s = until(lambda: killed not in brokers_seen_by(cluster.ports[active]) != set())
    back(cluster, killed)
    return took_s


def back(cluster: ThreeNodes, node: int) -> float:
    cluster.start_again(node)
    started = time.perf_counter()
    wait_until_all_serve(cluster)
    return time.perf_counter() - started


def restarted(cluster: ThreeNodes, node: int) -> str:
    cluster.kill(node)
    seconds = back(cluster, node)
    return f"{seconds:.1f} s, {resident_mb(cluster) / len(NODES):.0f} MB a node"


def topics_together(cluster: ThreeNodes) -> Figures:
    """Only the creation of topics in one request, several times; each client connects to another node."""
    cluster.start()
    taken: list[float] = []
    for number in range(ROUNDS):
        admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
        admin.list_topics(timeout=10)
        time.sleep(1)
        started = time.perf_counter()
        create(admin, [f"together-{number}-{topic}" for topic in range(TOPICS)], 3)
        taken.append(time.perf_counter() - started)
    middle = f"{median(taken):.2f} s ({min(taken):.2f} to {max(taken):.2f})"
    return {f"1,000 topics in one request, median of {ROUNDS}": middle}


def measure(cluster: ThreeNodes) -> Figures:
    figures: Figures = {}
    write_back()
    figures["start to first answer of all"] = f"{cluster.start():.2f} s"
    time.sleep(2)
    before_s = cpu_s(cluster)
    time.sleep(IDLE_S)
    figures["idle: memory"] = f"{resident_mb(cluster):.0f} MB"
    figures["idle: CPU"] = f"{(cpu_s(cluster) - before_s) / IDLE_S:.1%}"
    figures["active controller killed: next topic"] = f"{controller_killed(cluster):.2f} s"
    figures["broker killed: fenced"] = f"{broker_killed(cluster):.2f} s"
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
    started = time.perf_counter()
    for number in range(TOPICS):
        create(admin, [f"single-{number}"], 3)
    figures["1,000 topics one by one"] = f"{time.perf_counter() - started:.1f} s"
    started = time.perf_counter()
    create(admin, [f"together-{number}" for number in range(TOPICS)], 3)
    figures["1,000 topics in one request"] = f"{time.perf_counter() - started:.1f} s"
    for number in range((PARTITIONS - 6 * TOPICS) // PARTITIONS_OF_A_TOPIC):
        create(admin, [f"large-{number}"], PARTITIONS_OF_A_TOPIC)
    active = controller_of(cluster)
    figures["10,000 partitions: controller restarted"] = restarted(cluster, active)
    active = controller_of(cluster)
    figures["10,000 partitions: broker restarted"] = restarted(cluster, next(node for node in NODES if node != active))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cluster", description=__doc__.split("\n")[0])
    parser.add_argument("--quire-only", action="store_true")
    parser.add_argument("--only-topics", action="store_true", help="create topics in one request, and nothing else")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quire-cluster-") as name:
        folder = Path(name)
        clusters: list[ThreeNodes] = [QuireNodes(subfolder(folder, "quire"))]
        jars = None if arguments.quire_only else apache_kafka_jars()
        if jars is not None:
            clusters.append(ApacheKafkaNodes(subfolder(folder, "kafka"), jars))
        columns: list[Figures] = []
        for cluster in clusters:
            try:
                columns.append(topics_together(cluster) if arguments.only_topics else measure(cluster))
            finally:
                cluster.stop()
        print(f"| measure | {' | '.join(cluster.name for cluster in clusters)} |")
        print(f"|---|{'---|' * len(clusters)}")
        for measured in columns[0]:
            print(f"| {measured} | {' | '.join(column[measured] for column in columns)} |")


if __name__ == "__main__":
    main()
