"""A follower that was down copies the records it lacks, while a client writes.

A client writes one record at a time, with a short pause after each acknowledgement. After that a broker stops, the
topic gets a few gigabytes, and the broker starts again, while such a client writes to the same topic. The rate is what
the follower wrote to its log directory, from the first growth until it is in sync in every partition. So it does not
include the start of the process, which is reported separately.
"""

import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from benchmarks import loads
from benchmarks.clusters import NODES, ThreeNodes, bootstrap, controller_of, create_topic, isrs, until
from benchmarks.machine import write_back

PARTITIONS = 6
RECORD_BYTES = 1_000
BEFORE_S = 10.0
PAUSE_S = 0.002
LOOK_EVERY_S = 0.05
LIMIT_S = 600.0


@dataclass(slots=True)
class CaughtUp:
    megabytes_per_second: float
    first_copied_s: float
    """Measured from the start of the process."""
    before: loads.Latency
    during: loads.Latency


@dataclass
class SteadyWriter:
    """Writes one record at a time in a thread, with a pause after each."""

    servers: str
    topic: str
    _samples: list[tuple[float, float]] = field(default_factory=list)
    """When each acknowledgement came, and after how many microseconds."""
    _failure: str = ""
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "SteadyWriter":
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        if self._failure and error is None:
            raise RuntimeError(f"a record was not acknowledged: {self._failure}")

    def latency(self, began: float, ended: float) -> loads.Latency:
        return loads.latency([sample for at, sample in list(self._samples) if began <= at <= ended])

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0, "acks": "all"})
        acknowledged: list[object] = []
        while not self._stopping.is_set():
            started = time.perf_counter()
            producer.produce(
                self.topic, b"x" * RECORD_BYTES, partition=0, on_delivery=lambda error, _: acknowledged.append(error)
            )
            while not acknowledged:
                producer.poll(1)
            ended = time.perf_counter()
            error = acknowledged.pop()
            if error is not None:
                self._failure = str(error)
            self._samples.append((ended, (ended - started) * 1e6))
            time.sleep(PAUSE_S)


def catch_up(cluster: ThreeNodes, topic: str, gigabytes: float) -> CaughtUp:
    create_topic(cluster, topic, PARTITIONS)
    before = _write_undisturbed(cluster, topic)
    away = next(node for node in NODES if node != controller_of(cluster))
    cluster.hold_stopped(away)
    servers = bootstrap(cluster, without=away)
    admin = AdminClient({"bootstrap.servers": servers})
    until(lambda: _in_sync(admin, topic, away) == [False] * PARTITIONS, LOOK_EVERY_S, LIMIT_S)
    settings: dict[str, object] = {"acks": "all", "enable.idempotence": True}
    loads.produce(servers, topic, int(gigabytes * 1e9 / RECORD_BYTES), RECORD_BYTES, settings)
    write_back()
    kept_bytes = log_bytes(cluster, away, topic)
    with SteadyWriter(servers, topic) as writer:
        cluster.start_again(away)
        first_copied_s = until(lambda: log_bytes(cluster, away, topic) > kept_bytes, LOOK_EVERY_S, LIMIT_S)
        began = time.perf_counter()
        seconds = until(lambda: _in_sync(admin, topic, away) == [True] * PARTITIONS, LOOK_EVERY_S, LIMIT_S)
        ended = time.perf_counter()
        copied_bytes = log_bytes(cluster, away, topic) - kept_bytes
    return CaughtUp(copied_bytes / seconds / 1e6, first_copied_s, before, writer.latency(began, ended))


def _write_undisturbed(cluster: ThreeNodes, topic: str) -> loads.Latency:
    with SteadyWriter(bootstrap(cluster), topic) as writer:
        began = time.perf_counter()
        time.sleep(BEFORE_S)
        return writer.latency(began, time.perf_counter())


def _in_sync(admin: AdminClient, topic: str, node: int) -> list[bool]:
    return [node in isr for isr in isrs(admin, topic)]


def log_bytes(cluster: ThreeNodes, node: int, topic: str) -> int:
    return sum(path.stat().st_size for path in cluster.data(node).glob(f"{topic}-*/*.log"))
