"""`make bench-spark`: Quire's sink for Spark beside Spark's own Kafka connector, both writing to one Quire.

    python -m benchmarks.spark_sink [--rows 1000000] [--rounds 3] [--only batch]

Rows of 200 bytes with keys and no headers, `local[2]`, uncompressed; Spark generates them. The sides take
turns in one Spark; each figure is the median of its rounds, after one to warm up.

    batch      a batch job, at least once on both sides
    stream     micro-batches: exactly once, at least once, and the connector, which has no other; a round is a batch
    small      how long a micro-batch of 100 rows takes: the fixed cost of a batch
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.spark import cpu_s, session
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster

PARTITIONS = 4
ROW = ("lpad(cast({id} as string), 8, '0') as key", "lpad(cast({id} as string), 192, 'abcdefgh') as value")
MEASURES = ("batch", "stream", "small")
SMALL_ROWS = 100
SMALL_ROUNDS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures Quire's sink for Spark.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=MEASURES)
    arguments = parser.parse_args()
    with Cluster() as cluster, session() as (spark, sides):
        spark.sparkContext.setLogLevel("OFF")  # a query that is stopped during a batch logs a lot
        bench = SinkBench(spark, cluster.bootstrap_servers, sides)
        print(f"load of the machine when it began: {os.getloadavg()[0]:.1f}")
        for measure in [arguments.only] if arguments.only else MEASURES:
            if measure == "batch":
                bench.batches(arguments.rows, arguments.rounds)
            elif measure == "stream":
                bench.streams(arguments.rows, arguments.rounds)
            else:
                bench.small()


class SinkBench:
    def __init__(self, spark: SparkSession, servers: str, sides: list[str]) -> None:
        self._spark = spark
        self._servers = servers
        self._sides = sides
        self._topics = 0

    def batches(self, rows: int, rounds: int) -> None:
        frame = self._spark.range(rows, numPartitions=2).selectExpr(*(part.format(id="id") for part in ROW))
        speeds: dict[str, list[float]] = {side: [] for side in self._sides}
        costs: dict[str, list[float]] = {side: [] for side in self._sides}
        for number in range(rounds + 1):
            for side in self._sides:
                options = self._options()
                used_s, started = cpu_s(), time.perf_counter()
                frame.write.format(side).mode("append").options(**options).save()
                if number:
                    speeds[side].append(rows / (time.perf_counter() - started))
                    costs[side].append((cpu_s() - used_s) / rows * 1e6)
        text = ", ".join(
            f"{side} {median(figures) / 1e3:.0f} k rows/s ({median(costs[side]):.2f} CPU-s per million)"
            for side, figures in speeds.items()
        )
        print(f"batch sink: {text}{self._ratio(speeds)}", flush=True)

    def streams(self, rows: int, rounds: int) -> None:
        speeds = self._in_turns(lambda side, once: [rows / s for s in self._stream(side, once, rows, rounds + 1)[1:]])
        once, plain = median(speeds["quire"]), median(speeds["quire at least once"])
        text = ", ".join(f"{name} {median(figures) / 1e3:.0f} k rows/s" for name, figures in speeds.items())
        print(
            f"stream sink: {text}; exactly once has {once / plain:.0%} of at least once{self._ratio(speeds)}",
            flush=True,
        )

    def small(self) -> None:
        times = self._in_turns(lambda side, once: self._stream(side, once, SMALL_ROWS, SMALL_ROUNDS)[2:])
        text = ", ".join(f"{name} {median(figures) * 1e3:.0f} ms" for name, figures in times.items())
        print(f"a micro-batch of {SMALL_ROWS} rows: {text}", flush=True)

    def _in_turns(self, measure: Callable[[str, bool], list[float]]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for _ in range(2):
            found.setdefault("quire", []).extend(measure("quire", True))
            found.setdefault("quire at least once", []).extend(measure("quire", False))
            if "kafka" in self._sides:
                found.setdefault("kafka", []).extend(measure("kafka", False))
        return found

    def _stream(self, side: str, once: bool, rows: int, batches: int) -> list[float]:
        """The seconds that each of this many micro-batches took, from its plan to Spark's report that it is done."""
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
        frame = source.option("numPartitions", 2).load().selectExpr(*(part.format(id="value") for part in ROW))
        options = self._options() | ({"exactlyOnce": str(once).lower()} if side == "quire" else {})
        with tempfile.TemporaryDirectory() as folder:
            writer = frame.writeStream.format(side).options(**options).option("checkpointLocation", folder)
            query = writer.trigger(processingTime="0 seconds").start()
            while len(query.recentProgress) < batches:
                time.sleep(0.1)
                if (failure := query.exception()) is not None:
                    raise failure
            times = [progress["durationMs"]["triggerExecution"] / 1e3 for progress in query.recentProgress[:batches]]
            query.stop()
        return times

    def _options(self) -> dict[str, str]:
        """The options of the target: a new topic each time."""
        self._topics += 1
        topic = f"sink-{self._topics}"
        with BlockingClient(self._servers) as client:
            client.run(create_topics(client.cluster, [NewTopic(topic, PARTITIONS, 1)]))
        return {"kafka.bootstrap.servers": self._servers, "topic": topic}

    def _ratio(self, speeds: dict[str, list[float]]) -> str:
        return f"; {median(speeds['quire']) / median(speeds['kafka']):.2f}x of kafka" if "kafka" in speeds else ""


if __name__ == "__main__":
    main()
