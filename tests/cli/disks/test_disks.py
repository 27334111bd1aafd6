"""`quire disks` on a real node with two data directories."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.testing import Cluster
from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire

VALUE = b"x" * 1000


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Cluster, str, str]]:
    """With the topic `t` of two partitions; the directory of t-0 and the other one."""
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    with Cluster(data_dir=f"{one},{two}") as cluster:
        run(cluster, "topics", "create", "t", "--partitions", "2")
        if (Path(two) / "t-0").is_dir():
            one, two = two, one
        yield cluster, one, two


def run(cluster: Cluster, *arguments: str, code: int = 0, stdin: bytes = b"") -> str:
    done = quire(*arguments, servers=cluster.bootstrap_servers, stdin=stdin)
    assert done.returncode == code, done.stderr.decode() + done.stdout.decode()
    return done.stdout.decode() if code == 0 else done.stderr.decode()


def fill(cluster: Cluster, records: int) -> None:
    run(cluster, "produce", "t", "--partition", "0", stdin=(VALUE + b"\n") * records)


def listed(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {each["directory"]: each for each in json.loads(run(cluster, "disks", "list", "--json"))}


def broker_of(cluster: Cluster) -> str:
    return str(next(iter(listed(cluster).values()))["broker"])


def test_directories_are_listed_and_a_replica_moves(site: tuple[Cluster, str, str]) -> None:
    cluster, one, two = site
    fill(cluster, 100)
    found = listed(cluster)
    assert {path: each["replicas"] for path, each in found.items()} == {one: 1, two: 1}
    assert found[one]["size_bytes"] > 100_000 > found[two]["size_bytes"] == 0
    assert found[one]["online"] and found[one]["free_bytes"] <= found[one]["total_bytes"]
    text = run(cluster, "disks", "list")
    assert text.splitlines()[0].split()[:5] == ["BROKER", "DIRECTORY", "TOTAL", "FREE", "REPLICAS"]
    assert one in text and two in text
    broker = broker_of(cluster)
    said = run(cluster, "disks", "move", "t-0", "--to", two, "--broker", broker)
    assert "moving 1 replica with " in said and f"to {two} on broker {broker}" in said
    assert {path: each["replicas"] for path, each in listed(cluster).items()} == {one: 0, two: 2}
    assert "nothing to move" in run(cluster, "disks", "move", "t-0", "--to", two, "--broker", broker)


def test_a_whole_directory_moves_with_a_limit_that_is_removed_afterwards(site: tuple[Cluster, str, str]) -> None:
    cluster, one, two = site
    fill(cluster, 300)
    broker = broker_of(cluster)
    arguments = ["disks", "move", "--from", one, "--to", two, "--broker", broker, "--throttle", "1000000"]
    planned = json.loads(run(cluster, *arguments, "--dry-run", "--json"))
    assert [each["topic"] for each in planned["replicas"]] == ["t"] and not planned["done"]
    assert listed(cluster)[one]["replicas"] == 1
    assert "not confirmed" in run(cluster, *arguments, code=1)
    assert json.loads(run(cluster, *arguments, "--json"))["done"]
    assert listed(cluster)[one]["replicas"] == 0
    assert "replica.alter" not in run(cluster, "configs", "describe", "broker", broker)


def test_what_cannot_be_is_refused_before_anything_moves(site: tuple[Cluster, str, str]) -> None:
    cluster, one, two = site
    broker = broker_of(cluster)
    assert "has no data directory /nowhere" in run(
        cluster, "disks", "move", "t-0", "--to", "/nowhere", "--broker", broker, code=4
    )
    assert "no broker 77 serves" in run(cluster, "disks", "move", "t-0", "--to", two, "--broker", "77", code=4)
    assert "has no replica of t-9" in run(cluster, "disks", "move", "t-9", "--to", two, "--broker", broker, code=4)
    assert "not a topic and a partition" in run(cluster, "disks", "move", "t", "--to", two, "--broker", broker, code=2)
    assert "name replicas" in run(cluster, "disks", "move", "--to", two, "--broker", broker, code=2)
    assert listed(cluster)[one]["replicas"] == 1


def test_after_ctrl_c_the_broker_goes_on_and_a_move_back_cancels(site: tuple[Cluster, str, str]) -> None:
    cluster, one, two = site
    fill(cluster, 300)
    broker = broker_of(cluster)
    arguments = ["disks", "move", "t-0", "--to", two, "--broker", broker, "--throttle", "20000"]
    with killed_at_the_end(
        subprocess.Popen(
            [*QUIRE, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment({"QUIRE_BOOTSTRAP": cluster.bootstrap_servers}),
        )
    ) as command:
        while not listed(cluster)[two]["moving"]:
            assert command.poll() is None
        command.send_signal(signal.SIGINT)
        _, said = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 130
    assert f"broker {broker} goes on moving" in said.decode() and "The limit stays" in said.decode()
    (moving,) = listed(cluster)[two]["moving"]
    assert (moving["topic"], moving["partition"]) == ("t", 0) and moving["offset_lag"] > 0
    assert "nothing to move" in run(cluster, "disks", "move", "t-0", "--to", one, "--broker", broker)
    assert listed(cluster)[two]["moving"] == []
