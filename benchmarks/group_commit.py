"""`python -m benchmarks.group_commit`: fsynced writes per second when fifty writers share an fsync.

A topic with flush.messages=1 on a node of its own, and connections that each send one record of 100 bytes (acks=all),
wait for the answer, which means fsynced, and send the next. For comparison, two ways with one fsync per write: a bare
loop of write and fdatasync on the same disk, and a single writer on Quire. The measures take turns, and the median of
their rounds counts. Goal: fifty writers get at least ten times the writes of one fsync per write.

The factor depends on how slow an fsync is: writers that share one wait for it once, but each request still takes
processor time. So the time of one fsync is printed, too, and the rate of the same fifty writers without any fsync,
which is the upper limit.
"""

import argparse
import os
import selectors
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.brokers import Quire
from benchmarks.compare import subfolder
from benchmarks.sweep import create
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from quire.protocol.records import Record, build_batch
from quire.testing.wire_connection import request_frame

TOPIC = "flushed"
UNFLUSHED = "written"
WRITERS = 50
WANTED = 10
VERSION = 9
ERROR_AT = 4 + 4 + 1 + 1 + 1 + len(TOPIC) + 1 + 4
"""The position of the error in an answer about either topic: after length, correlation id, no tags, one topic and its
name, one partition and its index. Decoding whole answers would cost more than what is measured."""
assert len(UNFLUSHED) == len(TOPIC)


@dataclass(slots=True)
class Measure:
    writes_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """The node's CPU time for one write; 0 if there is none."""


class Writer:
    """One connection with one record in flight."""

    def __init__(self, port: int, frame: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frame = frame
        self._sent_at = 0.0

    def send(self) -> None:
        self._sent_at = time.perf_counter()
        self.socket.sendall(self._frame)

    def receive(self) -> float:
        """Reads the answer; returns how long it took, in milliseconds."""
        answer = self.socket.recv(4096)
        assert len(answer) == 4 + int.from_bytes(answer[:4]), "an answer of this size comes in one piece"
        error = int.from_bytes(answer[ERROR_AT : ERROR_AT + 2], signed=True)
        if error:
            raise RuntimeError(f"a write was refused: {ErrorCode(error).name}")
        return (time.perf_counter() - self._sent_at) * 1000


def record_frame(topic: str) -> bytes:
    batch = bytes(build_batch([Record(0, time.time_ns() // 1_000_000, None, b"x" * 100)]))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return request_frame(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]), VERSION, 1, "writer")


def write_concurrently(broker: Quire, topic: str, writers: int, seconds: float) -> Measure:
    frame = record_frame(topic)
    selector = selectors.DefaultSelector()
    connected = [Writer(broker.port, frame) for _ in range(writers)]
    for writer in connected:
        selector.register(writer.socket, selectors.EVENT_READ, writer)
    took_ms: list[float] = []
    before = broker.cpu()
    started = time.perf_counter()
    for writer in connected:
        writer.send()
    while (elapsed := time.perf_counter() - started) < seconds:
        for key, _ in selector.select():
            took_ms.append(key.data.receive())
            key.data.send()
    used = broker.cpu().since(before)
    selector.close()
    for writer in connected:
        writer.socket.close()
    return measure(took_ms, elapsed, used.total_s * 1e6 / len(took_ms))


def write_alone(folder: Path, size: int, seconds: float) -> Measure:
    """One process, one file, one fdatasync for each write: no network, no broker."""
    path = folder / "alone"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    data = b"x" * size
    took_ms: list[float] = []
    started = now = time.perf_counter()
    try:
        while now - started < seconds:
            os.pwrite(descriptor, data, len(took_ms) * size)
            os.fdatasync(descriptor)
            before, now = now, time.perf_counter()
            took_ms.append((now - before) * 1000)
    finally:
        os.close(descriptor)
        path.unlink()
    return measure(took_ms, now - started, 0.0)


def measure(took_ms: list[float], seconds: float, cpu_us: float) -> Measure:
    ordered = sorted(took_ms)
    return Measure(len(ordered) / seconds, ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], cpu_us)


def middle(rounds: list[Measure]) -> Measure:
    return Measure(
        median(each.writes_per_second for each in rounds),
        median(each.p50_ms for each in rounds),
        median(each.p99_ms for each in rounds),
        median(each.cpu_us for each in rounds),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.2, help="how long each measure takes in a round")
    options = parser.parse_args()
    rounds: dict[str, list[Measure]] = {}
    with tempfile.TemporaryDirectory(prefix="quire-group-commit-") as name:
        broker = Quire(subfolder(Path(name), "quire"))
        broker.start()
        try:
            create(broker, TOPIC, 1, {"flush.messages": "1"})
            create(broker, UNFLUSHED, 1)
            write_concurrently(broker, TOPIC, WRITERS, 0.5)
            for _ in range(options.rounds):
                alone = write_alone(Path(name), len(record_frame(TOPIC)), options.seconds)
                rounds.setdefault("write and fdatasync in a loop, no broker", []).append(alone)
                one = write_concurrently(broker, TOPIC, 1, options.seconds)
                rounds.setdefault("1 writer on Quire", []).append(one)
                many = write_concurrently(broker, TOPIC, WRITERS, options.seconds)
                rounds.setdefault(f"{WRITERS} writers on Quire", []).append(many)
                most = write_concurrently(broker, UNFLUSHED, WRITERS, options.seconds)
                rounds.setdefault(f"{WRITERS} writers on Quire, nothing fsynced", []).append(most)
        finally:
            broker.stop()
    report({name: middle(each) for name, each in rounds.items()})


def report(measures: dict[str, Measure]) -> None:
    print("| all but the last: fsynced | writes/s | p50 ms | p99 ms | CPU us per write |\n|---|---|---|---|---|")
    for name, each in measures.items():
        cpu = f"{each.cpu_us:.0f}" if each.cpu_us else ""
        print(f"| {name} | {each.writes_per_second:,.0f} | {each.p50_ms:.2f} | {each.p99_ms:.2f} | {cpu} |")
    bare, one, many, most = measures.values()
    shared = many.writes_per_second
    print(
        f"\n{WRITERS} writers that share an fsync: {shared / one.writes_per_second:.1f} times one writer on Quire, "
        f"{shared / bare.writes_per_second:.1f} times the bare loop, whose fsync takes {bare.p50_ms:.2f} ms "
        f"(wanted: {WANTED} times one fsync per write), and {shared / most.writes_per_second:.0%} of what there is "
        "without fsync"
    )


if __name__ == "__main__":
    main()
