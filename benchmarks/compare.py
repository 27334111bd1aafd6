"""`make bench`: Quire and Apache Kafka side by side, in one run, as one table.

    python -m benchmarks.compare [--rounds 5] [--only produce-1k] [--quire-only] [--json FILE]

The sides take turns; each measure is the median of its rounds. Without Java or Maven, Apache Kafka is left out, with a
message.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks import loads
from benchmarks.brokers import ApacheKafka, ProcessBroker, Quire
from benchmarks.machine import warm_memory, write_back

PARTITIONS = 6
WARM_UP_ROUNDS = 2
"""A JVM keeps getting faster for several gigabytes; a second warm-up round costs a minute, and is only fair."""
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
"""Settings of both sides. By default a new group waits three seconds for members, which would hide everything else."""
Figures = dict[str, float]
"""Name of a figure with its unit -> value."""


@dataclass(slots=True)
class Side:
    """One broker, its figures so far, and its topics."""

    broker: ProcessBroker
    figures: dict[str, list[float]] = field(default_factory=dict)
    topics: int = 0

    def new_topic(self, partitions: int = PARTITIONS) -> str:
        self.topics += 1
        name = f"bench-{self.topics}"
        loads.create_topic(self.broker.bootstrap, name, partitions)
        return name

    def add(self, measure: str, figures: Figures) -> None:
        for name, value in figures.items():
            self.figures.setdefault(f"{measure}: {name}", []).append(value)


def client_cpu_s() -> float:
    """The CPU time of this process, and of its child processes that have ended."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def by_volume(side: Side, work: Callable[[], loads.Volume]) -> Figures:
    before, client_before_s = side.broker.cpu(), client_cpu_s()
    volume = work()
    used, client_s = side.broker.cpu().since(before), client_cpu_s() - client_before_s
    gigabytes = volume.bytes / 1e9
    return {
        "MB/s": volume.megabytes_per_second,
        "k records/s": volume.records_per_second / 1e3,
        "CPU-s per GB": used.total_s / gigabytes,
        "user CPU-s per GB": used.user_s / gigabytes,
        "system CPU-s per GB": used.system_s / gigabytes,
        "the client's CPU-s per GB": client_s / gigabytes,
    }


def by_latency(side: Side, work: Callable[[], loads.Latency]) -> Figures:
    before = side.broker.cpu()
    seen = work()
    used = side.broker.cpu().since(before)
    return {"p50 us": seen.p50_us, "p99 us": seen.p99_us, "CPU us each": used.total_s * 1e6 / seen.count}


ACKS_1: dict[str, object] = {"acks": 1}
IDEMPOTENT: dict[str, object] = {"enable.idempotence": True}
LZ4: dict[str, object] = {**IDEMPOTENT, "compression.type": "lz4"}


def produce_1k(side: Side, settings: dict[str, object]) -> Figures:
    topic = side.new_topic()
    return by_volume(side, lambda: loads.produce(side.broker.bootstrap, topic, 600_000, 1000, settings))


def produce_100(side: Side) -> Figures:
    topic = side.new_topic()
    return by_volume(side, lambda: loads.produce_from_processes(side.broker.bootstrap, topic, 3, 700_000, 100, ACKS_1))


def consume_1k(side: Side) -> Figures:
    topic = side.new_topic()
    records = 600_000
    loads.produce(side.broker.bootstrap, topic, records, 1000, ACKS_1)
    return by_volume(side, lambda: loads.consume(side.broker.bootstrap, topic, PARTITIONS, records, 1000))


def one_ack(side: Side) -> Figures:
    topic = side.new_topic(1)
    return by_latency(side, lambda: loads.acknowledge_one_by_one(side.broker.bootstrap, topic, 4000, ACKS_1))


def end_to_end(side: Side) -> Figures:
    topic = side.new_topic(1)
    return by_latency(side, lambda: loads.produce_to_consume(side.broker.bootstrap, topic, 3000))


def one_record_transactions(side: Side) -> Figures:
    topic = side.new_topic(1)
    started = time.perf_counter()
    figures = by_latency(side, lambda: loads.transactions_of_one_record(side.broker.bootstrap, topic, 1000))
    return {"per s": 1000 / (time.perf_counter() - started), **figures}


def subscribe(side: Side, protocol: str) -> Figures:
    topic = side.new_topic(1)
    loads.produce(side.broker.bootstrap, topic, 1, 100, ACKS_1)
    return by_latency(side, lambda: loads.subscribe_to_first_record(side.broker.bootstrap, topic, 15, protocol))


MEASURES: dict[str, Callable[[Side], Figures]] = {
    "produce 1 KB, acks=1": lambda side: produce_1k(side, ACKS_1),
    "produce 1 KB, acks=all idempotent": lambda side: produce_1k(side, IDEMPOTENT),
    "produce 1 KB, lz4, acks=all idempotent": lambda side: produce_1k(side, LZ4),
    "produce 100 B, three producers": produce_100,
    "consume 1 KB": consume_1k,
    "one record, wait for the ack": one_ack,
    "produce to consume, one record": end_to_end,
    "transactions of one record": one_record_transactions,
    "subscribe to first record, classic": lambda side: subscribe(side, "classic"),
    "subscribe to first record, KIP-848": lambda side: subscribe(side, "consumer"),
}


def measure(sides: list[Side], names: list[str], rounds: int, folder: Path) -> list[float]:
    """All measures in turns; the first rounds warm up both sides and are discarded. Returns the controls."""
    controls = []
    for number in range(1 - WARM_UP_ROUNDS, rounds + 1):
        for name in names:
            for side in sides if number % 2 else reversed(sides):
                write_back()
                controls.append(warm_memory(folder))
                figures = MEASURES[name](side)
                if number > 0:
                    side.add(name, figures)
                shown = ", ".join(f"{value:.4g} {unit}" for unit, value in figures.items())
                print(f"  round {number}/{rounds}  {side.broker.name:13} {name}: {shown}", file=sys.stderr)
    return controls


def start(side: Side, times: int) -> None:
    """Starts and stops the broker a few times; after the last start it keeps running for the loads."""
    for number in range(times):
        side.add("start to first answer", {"s": side.broker.start()})
        if number < times - 1:
            side.broker.stop()
    side.add("memory", {"MB idle": side.broker.resident_bytes() / 1e6})


def table(sides: list[Side]) -> str:
    lines = ["| measure | " + " | ".join(side.broker.name for side in sides) + " | ratio |"]
    lines.append("|---|" + "---|" * (len(sides) + 1))
    for name in sides[0].figures:
        values = [median(side.figures[name]) for side in sides]
        ratio = f"{values[0] / values[1]:.2f}" if len(values) == 2 and values[1] else ""
        lines.append(f"| {name} | " + " | ".join(f"{value:.4g}" for value in values) + f" | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.compare", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds after the warm-up (default 5)")
    parser.add_argument("--only", default="", help="only the measures whose name contains this")
    parser.add_argument("--quire-only", action="store_true", help="leave Apache Kafka out")
    parser.add_argument("--json", type=Path, help="also write every figure of every round to this file")
    arguments = parser.parse_args()
    names = [name for name in MEASURES if arguments.only in name]
    with tempfile.TemporaryDirectory(prefix="quire-bench-") as name:
        folder = Path(name)
        sides = [Side(Quire(subfolder(folder, "quire"), SETTINGS))]
        jars = None if arguments.quire_only else apache_kafka_jars()
        if jars is not None:
            sides.append(Side(ApacheKafka(subfolder(folder, "kafka"), jars, SETTINGS)))
        try:
            for side in sides:
                start(side, 3)
            controls = measure(sides, names, arguments.rounds, folder)
            for side in sides:
                side.add("memory", {"MB after the load": side.broker.resident_bytes() / 1e6})
        finally:
            for side in sides:
                side.broker.stop()
    print(table(sides))
    print(f"\nbare pwrite beside it: {min(controls):.0f} to {max(controls):.0f} MB/s, median {median(controls):.0f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({side.broker.name: side.figures for side in sides}, indent=1))


def apache_kafka_jars() -> Path | None:
    """The folder of Apache Kafka; None, with a message, if it is not available."""
    from interop.apache_kafka import jars
    from interop.maven import NotAvailableError

    try:
        return jars()
    except NotAvailableError as error:
        print(f"Apache Kafka is left out: {error}", file=sys.stderr)
        return None


def subfolder(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir()
    return path


if __name__ == "__main__":
    main()
