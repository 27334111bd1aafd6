"""How long writes wait when the leader of their partition is killed or stopped, with three nodes and replicas.

A client writes one record at a time with acks=all. A second after it began its leader goes away, and the figure is the
longest time between two acknowledgements from then on.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.clusters import (
    ThreeNodes,
    bootstrap,
    controller_of,
    create_topic,
    leader_of,
    wait_until_all_serve,
)

ROUNDS = 3
WATCHED_S = 20.0
"""How long writes continue after the leader's end."""
RETRY_MS = 100
RETRIES_EVERY_100_MS: dict[str, object] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "retry.backoff.ms": RETRY_MS,
    "retry.backoff.max.ms": RETRY_MS,
    "topic.metadata.refresh.fast.interval.ms": RETRY_MS,
    "reconnect.backoff.ms": RETRY_MS,
    "reconnect.backoff.max.ms": RETRY_MS,
}
JAVA = Path(__file__).parent / "java" / "OneByOne.java"

Client = Callable[[ThreeNodes, str, Callable[[], None]], float]
"""Writes to a topic, calls the function after a second, and returns the longest gap between acknowledgements."""


def librdkafka(settings: Mapping[str, object]) -> Client:
    def longest_gap(cluster: ThreeNodes, topic: str, fault: Callable[[], None]) -> float:
        producer = Producer({"bootstrap.servers": bootstrap(cluster), **settings, "log_level": 0})
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

    return longest_gap


def java(jars: Path) -> Client:
    """Kafka's own producer with its default settings."""

    def longest_gap(cluster: ThreeNodes, topic: str, fault: Callable[[], None]) -> float:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        program = ["java", "-Xmx256m", quiet, "-cp", f"{jars}/*", str(JAVA)]
        command = [*program, bootstrap(cluster), topic, f"{WATCHED_S:.0f}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline().strip()
            if first != "writing":
                raise RuntimeError(f"the Java client said {first!r}, and ended with {process.wait()}")
            fault()
            return float(process.stdout.readline()) / 1e3

    return longest_gap


def leader_killed(cluster: ThreeNodes, name: str, client: Client, *, is_controller: bool = False) -> list[float]:
    """kill -9; `is_controller` says whether the leader is the active controller too."""
    gaps = []
    for number in range(ROUNDS):
        topic = f"{name}-{number}"
        while True:
            create_topic(cluster, topic)
            leader = leader_of(cluster, topic)
            if (leader == controller_of(cluster)) == is_controller:
                break
            topic += "x"

        def kill(node: int = leader) -> None:
            cluster.kill(node)

        gaps.append(client(cluster, topic, kill))
        cluster.start_again(leader)
        wait_until_all_serve(cluster)
    return gaps


def leader_stopped(cluster: ThreeNodes, name: str, client: Client) -> list[float]:
    """A controlled shutdown."""
    gaps = []
    for number in range(ROUNDS):
        topic = f"{name}-{number}"
        create_topic(cluster, topic)
        leader = leader_of(cluster, topic)
        pid = cluster.pid(leader)

        def stop(process: int = pid) -> None:
            os.kill(process, signal.SIGTERM)

        gaps.append(client(cluster, topic, stop))
        cluster.start_again(leader)
        wait_until_all_serve(cluster)
    return gaps
