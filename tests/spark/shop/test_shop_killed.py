"""The shop's pipeline is killed repeatedly with -9 at any moment: every event is in its results and in the lake
once."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quire.testing import Cluster
from quire_samples.shop.events import TOPICS, Kind, ShopEvents
from tests.cli.command import QUIRE, environment, killed_at_the_end
from tests.spark.conftest import ROOT, spark_environment
from tests.spark.shop.running import Shop

START_MS = 1_790_000_000_000
PATIENCE_S = 240


def kill_at_some_point(servers: str, state: Path, dice: random.Random) -> None:
    """Starts the pipeline, waits until its queries run, lets it run for a while, and kills it."""
    command = [*QUIRE, "pipelines", "run", "shop", "--folder", str(ROOT / "pipelines"), "--state", str(state)]
    before = len(list(state.rglob("offsets/*")))
    started = subprocess.Popen(
        [*command, "-q", "-b", servers], cwd=ROOT, env=environment(spark_environment()), start_new_session=True
    )
    with killed_at_the_end(started) as process:
        deadline = time.monotonic() + PATIENCE_S
        while len(list(state.rglob("offsets/*"))) == before:  # a new batch was planned
            assert process.poll() is None and time.monotonic() < deadline
        moment = time.monotonic() + dice.uniform(0, 12)
        while time.monotonic() < moment:
            assert process.poll() is None
        spark = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for group in [process.pid, *map(int, spark)]:  # Spark is in a separate process group
            os.killpg(group, signal.SIGKILL)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_every_event_is_recorded_once_through_kills_of_processor_and_node(
    spark: SparkSession, fresh_quire_cluster: Cluster, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    servers = fresh_quire_cluster.bootstrap_servers
    shop = Shop(spark, servers, tmp_path)
    made = ShopEvents(random.Random(seed))
    sent = []
    for kill in range(4):
        events = [made.next(START_MS + 600 * (2000 * kill + index)) for index in range(2000)]
        shop.send(events)
        sent += events
        kill_at_some_point(servers, tmp_path, dice)
    tallies = shop.run()

    clean = Counter(event["event_id"] for event in shop.results("shop_events"))
    assert set(clean.values()) == {1}
    assert made.counts[Kind.GOOD] <= len(clean) <= made.counts[Kind.GOOD] + made.counts[Kind.LATE]
    letters = shop.records(*(f"{topic}.dlq" for topic in TOPICS))
    assert len(letters) == made.counts[Kind.BROKEN]
    lake = Counter((row["topic"], row["partition"], row["offset"]) for row in shop.lake())
    assert set(lake.values()) == {1} and len(lake) == len(sent)
    for topic in ("sales_per_minute", "sales_5m", "top_viewed_products"):
        windows = Counter(result["start"] for result in shop.results(topic))
        assert set(windows.values()) == {1}
    assert tallies["clean"].adds_up or tallies["clean"].missed, "a sum that is not whole says so"
