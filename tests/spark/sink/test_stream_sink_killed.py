"""Exactly once, although Spark's driver with its tasks, or the node they write to, is killed with -9 at any time."""

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster
from tests.spark.conftest import ROOT, MakeTopic, spark_environment
from tests.spark.sink.copying import fill, lake_in, numbers, read_numbers, start_copy
from tests.spark.sink.log_reader import values

ROWS = 320
BATCH_ROWS = 40


class Job:
    """The copying job in separate processes: Python, its Java child process, and Java's Python workers."""

    def __init__(self, servers: str, source: str, sink: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.spark.sink.copy_job", servers, source, sink, str(folder)]
        self._process = subprocess.Popen(
            [*command, str(BATCH_ROWS)],
            cwd=ROOT,
            env={**os.environ, **spark_environment()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._said: list[str] = []
        self._news = threading.Condition()
        self._is_quiet = False
        # The test must read all of it: Spark waits for room in the pipe before it continues.
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._said.append(line)
                self._news.notify()
        with self._news:
            self._is_quiet = True
            self._news.notify()

    def wait_for(self, word: str) -> bool:
        """Waits until the job prints the word; False if it ends before."""
        with self._news:
            self._news.wait_for(lambda: self._is_quiet or f"{word}\n" in self._said)
            return f"{word}\n" in self._said

    def kill_in_a_batch(self, checkpoint: Path, more: int, seconds: float) -> None:
        """Sends SIGKILL to the whole session, this long after this many more batches have begun; does nothing if it has
        ended."""
        wanted = planned(checkpoint) + more
        while self._process.poll() is None and planned(checkpoint) < wanted:
            self._over_within(0.02)
        if not self._over_within(seconds):
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _over_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def output(self) -> str:
        return "".join(self._said)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            # Java may outlive the driver for a moment.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def planned(checkpoint: Path) -> int:
    """How many batches Spark has begun."""
    folder = checkpoint / "offsets"
    return sum(path.name.isdigit() for path in folder.iterdir()) if folder.is_dir() else 0


def in_the_lake(folder: Path) -> list[str]:
    """The values in the table that the job fills, sorted; none before it exists."""
    table = lake_in(folder)
    return sorted(DeltaTable(table).to_pyarrow_table()["value"].to_pylist()) if DeltaTable.is_deltatable(table) else []


def copy_through_kills(
    seed: int, kills: int, servers: str, client: BlockingClient, make_topic: MakeTopic, folder: Path
) -> None:
    chance = random.Random(seed)
    source, sink = make_topic(partitions=2), make_topic(partitions=3)
    fill(client, source, 0, ROWS, 2)
    for number in range(kills):
        job = Job(servers, source, sink, folder)
        try:
            assert job.wait_for("ready"), job.output
            # The first run dies in batch 0, for which Spark stores no start.
            job.kill_in_a_batch(folder / "checkpoint", chance.randint(1, 3) if number else 1, chance.uniform(0, 1))
        finally:
            job.end()
        for found in (values(servers, sink), in_the_lake(folder)):
            assert len(found) == len(set(found)), f"seed {seed}: something is there twice after a kill"
    job = Job(servers, source, sink, folder)
    try:
        assert job.wait_for("copied"), f"seed {seed}: {job.output}"
    finally:
        job.end()
    assert values(servers, sink) == in_the_lake(folder) == numbers(0, ROWS), f"seed {seed}"


def test_a_driver_killed_three_times_copies_everything_once(
    servers: str, client: BlockingClient, make_topic: MakeTopic, tmp_path: Path
) -> None:
    copy_through_kills(random.randrange(2**32), 3, servers, client, make_topic, tmp_path)


@pytest.mark.soak
def test_a_driver_killed_twenty_times_copies_everything_once(
    servers: str, client: BlockingClient, make_topic: MakeTopic, tmp_path: Path
) -> None:
    copy_through_kills(random.randrange(2**32), 20, servers, client, make_topic, tmp_path)


def test_a_node_killed_during_batches_and_started_again_is_waited_for(
    spark: SparkSession, fresh_quire_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = fresh_quire_cluster
    servers = cluster.bootstrap_servers
    with BlockingClient(servers) as client:
        topics = [NewTopic(name, partitions=2, replication_factor=1) for name in ("source", "sink")]
        client.run(create_topics(client.cluster, topics))
        fill(client, "source", 0, 240, 2)
    frame = read_numbers(spark, servers, "source", maxOffsetsPerTrigger=30, minPartitions=2)
    query = start_copy(frame, servers, "sink", tmp_path / "checkpoint")
    over = threading.Event()

    def kill_and_restart() -> None:
        while not query.recentProgress and not over.wait(0.02):
            """If the first request finds no node, that is an error; later ones wait for the node."""
        for _ in range(3):
            if over.wait(random.uniform(0, 1.5)):
                return
            cluster.kill()
            cluster.restart()

    killer = threading.Thread(target=kill_and_restart)
    killer.start()
    try:
        query.awaitTermination()
    finally:
        over.set()
        killer.join()
    assert values(servers, "sink") == numbers(0, 240)
