"""Apache Kafka's tools move replicas between the data directories of a running Quire."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.apache_kafka import ApacheKafka
from quire.testing import Cluster

RECORDS = 20_000
TOPIC = "moving"


@pytest.fixture
def two_disks(tmp_path: Path) -> Iterator[tuple[Cluster, list[str]]]:
    directories = [str(tmp_path / "one"), str(tmp_path / "two")]
    with Cluster(data_dir=",".join(directories)) as cluster:
        yield cluster, directories


def log_dirs(kafka: ApacheKafka, at: tuple[str, str]) -> dict[str, list[dict[str, Any]]]:
    """By directory, what kafka-log-dirs says of its replicas."""
    said = kafka.tool("LogDirsCommand", *at, "--describe", "--topic-list", TOPIC)
    (line,) = [each for each in said.splitlines() if each.startswith("{")]
    (broker,) = json.loads(line)["brokers"]
    assert all(each["error"] is None for each in broker["logDirs"])
    return {each["logDir"]: each["partitions"] for each in broker["logDirs"]}


def test_a_plan_with_log_dirs_moves_a_replica_and_is_verified(
    kafka: ApacheKafka, two_disks: tuple[Cluster, list[str]], tmp_path: Path
) -> None:
    cluster, directories = two_disks
    at = ("--bootstrap-server", cluster.bootstrap_servers)
    kafka.tool("TopicCommand", *at, "--create", "--topic", TOPIC, "--partitions", "1")
    kafka.tool(
        "ProducerPerformance", *at, "--topic", TOPIC, "--num-records", str(RECORDS), "--record-size", "100",
        "--throughput", "-1",
    )  # fmt: skip
    before = log_dirs(kafka, at)
    source = next(path for path, found in before.items() if found)
    target = next(path for path in directories if path != source)
    (held,) = before[source]
    assert (held["partition"], held["offsetLag"], held["isFuture"]) == (f"{TOPIC}-0", 0, False)
    assert held["size"] > 100 * RECORDS

    plan = tmp_path / "plan.json"
    replica = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [target]}
    plan.write_text(json.dumps({"version": 1, "partitions": [replica]}))
    reassign = ("reassign.ReassignPartitionsCommand", *at, "--reassignment-json-file", str(plan))
    said = kafka.tool(*reassign, "--execute", "--replica-alter-log-dirs-throttle", "1000000")
    assert f"Successfully started moving log directory to {target} for replica moving-0 with broker 1" in said
    said = kafka.tool(*reassign, "--verify", "--preserve-throttles")
    while "is still in progress" in said:
        said = kafka.tool(*reassign, "--verify", "--preserve-throttles")
    assert "completed successfully" in said, said
    kafka.tool(*reassign, "--verify")
    after = log_dirs(kafka, at)
    assert after == {source: [], target: [held]}
    assert (Path(target) / f"{TOPIC}-0").is_dir()
    read = kafka.tool(
        "consumer.ConsoleConsumer", *at, "--topic", TOPIC, "--partition", "0", "--offset", "earliest",
        "--max-messages", str(RECORDS), "--timeout-ms", "20000",
    )  # fmt: skip
    assert len(read.splitlines()) == RECORDS


def test_a_directory_that_does_not_exist_is_refused(
    kafka: ApacheKafka, two_disks: tuple[Cluster, list[str]], tmp_path: Path
) -> None:
    cluster, _ = two_disks
    at = ("--bootstrap-server", cluster.bootstrap_servers)
    kafka.tool("TopicCommand", *at, "--create", "--topic", TOPIC, "--partitions", "1")
    plan = tmp_path / "plan.json"
    replica = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": ["/nowhere"]}
    plan.write_text(json.dumps({"version": 1, "partitions": [replica]}))
    reassign = ("reassign.ReassignPartitionsCommand", *at, "--reassignment-json-file", str(plan))
    kafka.tool(*reassign, "--execute", "--timeout", "3000", fails=True)
    assert all(each["isFuture"] is False for found in log_dirs(kafka, at).values() for each in found)
