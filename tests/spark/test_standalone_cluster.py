"""The same pipelines on a real Spark cluster: a master and two workers, one of which is killed at the end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from quire.client.admin.topics import NewTopic, create_topics
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster
from quire_samples.inventory.processor import ProcessorConfig
from tests.cli.command import QUIRE, environment, quire
from tests.samples.command import samples
from tests.samples.inventory.running import carry_out, records
from tests.spark import standalone_job
from tests.spark.conftest import ROOT, spark_environment
from tests.spark.standalone_cluster import StandaloneCluster, standalone_cluster
from tests.wire.clients import eventually

EVENTS = 2_000
COMMANDS = 1_000
RECORDS = 8_000
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A separate node, because the pipelines' topics have fixed names."""
    with Cluster() as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def client(servers: str) -> Iterator[BlockingClient]:
    with BlockingClient(servers) as opened:
        yield opened


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


def test_the_pipelines_do_on_a_cluster_what_they_do_on_one_machine(
    servers: str, client: BlockingClient, spark_cluster: StandaloneCluster, tmp_path: Path
) -> None:
    assert samples("shop", "send", "--events", str(EVENTS), "--rate", "0", servers=servers).returncode == 0
    assert samples("inventory", "send", "--commands", str(COMMANDS), "--rate", "0", servers=servers).returncode == 0
    carry_out(client, ProcessorConfig(), COMMANDS)
    run = subprocess.run(
        [
            *QUIRE,
            *("pipelines", "run", "shop", "inventory", "--available-now", "--quiet", "-b", servers),
            *("--folder", str(ROOT / "pipelines"), "--state", str(tmp_path), "--master", spark_cluster.master),
            *(word for key, value in standalone_job.SMALL.items() for word in ("--conf", f"{key}={value}")),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment(spark_environment()),
    )
    assert run.returncode == 0, f"{run.stderr}\n{(tmp_path / 'spark.log').read_text()[-4000:]}"
    assert spark_cluster.log("master").count("Launching executor") == 2
    clean, *_ = status(tmp_path, "shop")
    assert clean["rows"] == EVENTS
    assert sum(clean["counts"].values()) + clean["duplicates"] + clean["late"] == EVENTS
    assert len(DeltaTable(tmp_path / "lake" / "shop" / "events").to_pyarrow_table()) == EVENTS
    checked = samples(
        "inventory", "check", "--lake", str(tmp_path / "lake/inventory/events"), "--json", servers=servers
    )
    report = json.loads(checked.stdout)
    assert (checked.returncode, report["agrees"], report["events_not_in_lake"]) == (0, True, 0), report


def status(state: Path, pipeline: str) -> list[dict[str, Any]]:
    """The counted rows of every query, in the order of the file."""
    shown = quire("pipelines", "status", pipeline, "--json", "--state", str(state), "--folder", str(ROOT / "pipelines"))
    assert shown.returncode == 0, shown.stderr
    (found,) = json.loads(shown.stdout)
    queries: list[dict[str, Any]] = found["queries"]
    return queries


@pytest.mark.soak
def test_a_stream_is_written_once_although_a_worker_is_killed(
    servers: str, client: BlockingClient, spark_cluster: StandaloneCluster, tmp_path: Path
) -> None:
    topic, copy = "numbers", "numbers-copied"
    client.run(create_topics(client.cluster, [NewTopic(topic, 4), NewTopic(copy, 2)]))
    fill(client, topic)
    driver = subprocess.Popen(
        [sys.executable, standalone_job.__file__, spark_cluster.master, servers, topic, copy, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | spark_environment(),
    )
    try:
        eventually(lambda: driver.poll() is not None or len(records(client, copy)) > 0, PATIENCE_S)
        spark_cluster.kill_worker()
        out, err = driver.communicate(timeout=PATIENCE_S)
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0, f"{err[-4000:]}\n{spark_cluster.log('master')[-2000:]}"
    assert json.loads(out) == {"executors": 1}, "the worker that was left has done the rest"
    assert sorted(int(record.value or b"") for _, record in records(client, copy)) == list(range(RECORDS))


def fill(client: BlockingClient, topic: str) -> None:
    producer = Producer(client.cluster)
    client.run(producer.prepare(topic))
    for number in range(RECORDS):
        producer.send(topic, b"%d" % number, key=b"%d" % number)
    client.loop.run_until(producer.flush())
    assert producer.first_error is None
