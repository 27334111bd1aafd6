"""`make bench-spark`: Quire's source for Spark beside Spark's own Kafka connector, both reading from one Quire.

    python -m benchmarks.spark [--rows 2000000] [--rounds 3] [--only batch]

Rows of 200 bytes, `local[2]`. The sides take turns in one Spark; each figure is the median of its rounds, after one to
warm up. The connector comes from Maven; if it is not available, it is left out, with a message.

    batch      key, value, partition and offset of a topic to the noop sink
    window     a stream over the whole topic in several micro-batches, counted in five-minute windows of event time;
               the start of the stream is reported separately, because a stream starts once
    trigger    how long a small micro-batch without state takes, beside Spark's own rate source
    memory     the largest size of a Python worker
"""

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from statistics import median
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window

from benchmarks.processes import cpu, cpu_of_ended_children_s, descendants, resident_bytes
from interop.maven import NotAvailableError
from interop.spark_kafka import connector_jars
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.offsets import EARLIEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import Record, build_batch
from quire.testing import Cluster
from tests.spark.conftest import SETTINGS, spark_environment
from tests.spark.filling import append_bytes

PARTITIONS = 4
ROW_BYTES = 200
KEY_BYTES = 8
ROWS_PER_BATCH = 80
"""The rows that fit into the 16 KB that a producer collects by default."""
MEASURES = ("batch", "window", "trigger")
SMALL_BATCHES = 20
STREAM_BATCHES = 4


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures Quire's source for Spark.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=MEASURES)
    arguments = parser.parse_args()
    chosen = [arguments.only] if arguments.only else list(MEASURES)
    with Cluster() as cluster, BlockingClient(cluster.bootstrap_servers) as client, session() as (spark, sides):
        bench = Bench(spark, client, cluster.bootstrap_servers, sides, arguments.rows, arguments.rounds)
        print(f"load of the machine when it began: {os.getloadavg()[0]:.1f}")
        with largest_worker() as largest:
            if "batch" in chosen or "window" in chosen:
                bench.fill()
            if "batch" in chosen:
                bench.compare("batch read", bench.batch)
            if "window" in chosen:
                bench.compare("five-minute window", bench.windowed)
        print(f"largest Python worker: {largest() / 1e6:.0f} MB resident")
        if "trigger" in chosen:
            bench.triggers()


@contextmanager
def session() -> Iterator[tuple[SparkSession, list[str]]]:
    """Spark with the connector beside Quire's source, and the names of both."""
    os.environ.update(spark_environment())
    builder, sides = SparkSession.builder.master("local[2]").appName("quire benchmarks"), ["quire", "kafka"]
    for key, value in (SETTINGS | {"spark.ui.showConsoleProgress": "false"}).items():
        builder = builder.config(key, value)
    try:
        builder = builder.config("spark.jars", connector_jars())
    except NotAvailableError as error:
        print(f"without Spark's own connector: {error}")
        sides.pop()
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark, sides
    finally:
        spark.stop()


class Run(NamedTuple):
    """The rows of one round, its duration, and the time to start."""

    rows: int
    seconds: float
    start_s: float = 0.0


class Bench:
    def __init__(
        self, spark: SparkSession, client: BlockingClient, servers: str, sides: list[str], rows: int, rounds: int
    ) -> None:
        self._spark = spark
        self._client = client
        self._servers = servers
        self._sides = sides
        self._rounds = rounds
        self._batches = rows // ROWS_PER_BATCH
        self._topic = ""

    @property
    def rows(self) -> int:
        return self._batches * ROWS_PER_BATCH

    def new_topic(self, name: str) -> str:
        self._client.run(create_topics(self._client.cluster, [NewTopic(name, PARTITIONS, 1)]))
        topic_partitions = {TopicPartition(name, partition): EARLIEST for partition in range(PARTITIONS)}
        self._client.run(list_offsets(self._client.cluster, topic_partitions))
        return name

    def fill(self) -> None:
        self._topic = self.new_topic("rows")
        batch = new_batch(ROWS_PER_BATCH)
        for number in range(self._batches):
            append_bytes(self._client, self._topic, batch, number % PARTITIONS)

    def compare(self, name: str, measure: Callable[[str], Run]) -> None:
        """Runs the sides in turn: rows per second, and the processor time of a million rows, including the broker's."""
        speeds: dict[str, list[float]] = {side: [] for side in self._sides}
        costs: dict[str, list[float]] = {side: [] for side in self._sides}
        starts: dict[str, list[float]] = {side: [] for side in self._sides}
        for number in range(self._rounds + 1):
            for side in self._sides:
                used_s = cpu_s()
                run = measure(side)
                if number:
                    speeds[side].append(run.rows / run.seconds)
                    costs[side].append((cpu_s() - used_s) / self.rows * 1e6)
                    starts[side].append(run.start_s)
        found = {side: median(figures) for side, figures in speeds.items()}
        text = ", ".join(
            f"{side} {speed / 1e3:.0f} k rows/s ({median(costs[side]):.2f} CPU-s per million in all"
            + (f", started in {median(starts[side]):.1f} s)" if any(starts[side]) else ")")
            for side, speed in found.items()
        )
        ratio = f", {found['quire'] / found['kafka']:.2f}x" if "kafka" in found else ""
        print(f"{name}: {text}{ratio}", flush=True)

    def options(self, side: str, topic: str, **more: Any) -> dict[str, str]:
        given = {"kafka.bootstrap.servers": self._servers, "subscribe": topic, "startingOffsets": "earliest"}
        return given | {key: str(value) for key, value in more.items()}

    def batch(self, side: str) -> Run:
        started = time.perf_counter()
        frame = self._spark.read.format(side).options(**self.options(side, self._topic)).load()
        frame.select("key", "value", "partition", "offset").write.format("noop").mode("overwrite").save()
        return Run(self.rows, time.perf_counter() - started)

    def windowed(self, side: str) -> Run:
        given = self.options(side, self._topic, maxOffsetsPerTrigger=self.rows // STREAM_BATCHES)
        started = time.perf_counter()
        frame = self._spark.readStream.format(side).options(**given).load()
        counts = frame.withWatermark("timestamp", "1 minute").groupBy(window("timestamp", "5 minutes"), "partition")
        with tempfile.TemporaryDirectory() as folder:
            writer = counts.count().writeStream.format("noop").outputMode("update")
            query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
            query.awaitTermination()
        whole_s = time.perf_counter() - started
        read = [(found["numInputRows"], found["durationMs"]["triggerExecution"]) for found in query.recentProgress]
        read = [(rows, ms) for rows, ms in read if rows]
        # The first micro-batch starts the workers, so it counts as part of the start.
        seconds = sum(ms for _, ms in read[1:]) / 1000
        return Run(sum(rows for rows, _ in read[1:]), seconds, whole_s - seconds)

    def triggers(self) -> None:
        """The median time of small micro-batches, of Spark's rate source and of the sides, fed as it is."""
        rate = self._spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
        found = {"rate": trigger_ms(rate)}
        for side in self._sides:
            topic = self.new_topic(f"trickle-{side}")
            given = self.options(side, topic)
            with self.trickle(topic):
                found[side] = trigger_ms(self._spark.readStream.format(side).options(**given).load())
        text = ", ".join(f"{side} {figure:.0f} ms" for side, figure in found.items())
        print(f"a small micro-batch: {text}; quire takes {found['quire'] / found['rate']:.2f}x of rate", flush=True)

    @contextmanager
    def trickle(self, topic: str) -> Iterator[None]:
        """A thousand rows each second, as the rate source gives them."""
        over = threading.Event()

        def feed() -> None:
            batch = new_batch(1000 // PARTITIONS)
            with BlockingClient(self._servers) as client:
                while not over.wait(1):
                    for partition in range(PARTITIONS):
                        append_bytes(client, topic, batch, partition)

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def new_batch(count: int) -> bytes:
    now_ms = int(time.time() * 1000)
    records = [
        Record(0, now_ms, b"%0*d" % (KEY_BYTES, index), os.urandom(ROW_BYTES - KEY_BYTES)) for index in range(count)
    ]
    return bytes(build_batch(records))


def trigger_ms(frame: DataFrame) -> float:
    """Of micro-batches with records, without the first, which is cold."""
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(processingTime="0 seconds").start()
        times: dict[int, float] = {}
        while len(times) <= SMALL_BATCHES:
            time.sleep(0.2)
            for progress in query.recentProgress:
                if progress["numInputRows"]:
                    times[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
        query.stop()
    return median([times[number] for number in sorted(times)[1:]])


def cpu_s() -> float:
    """The processor time of all child processes so far: Spark, its Python workers, the broker."""
    used = 0.0
    for pid in descendants(os.getpid()):
        with suppress(OSError):
            used += cpu(pid).total_s + cpu_of_ended_children_s(pid)
    return used


@contextmanager
def largest_worker() -> Iterator[Callable[[], int]]:
    """The largest size of a Python process below this one, sampled ten times a second."""
    largest = 0
    over = threading.Event()

    def look() -> None:
        nonlocal largest
        while not over.wait(0.1):
            for pid in descendants(os.getpid()):
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        if b"pyspark" in (line := file.read()) and b"java" not in line.split(b"\0")[0]:
                            largest = max(largest, resident_bytes(pid))
                except (OSError, ProcessLookupError):
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lambda: largest
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    main()
