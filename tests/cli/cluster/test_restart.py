"""`quire cluster restart` and `quire cluster check-restart` on a real cluster of `quire start --nodes`."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.cli.node.local.control_socket import FILE_NAME
from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire
from tests.cli.node.local.running import RunningCluster, cluster, until

ASKED = "is restarted on request"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder = tmp_path_factory.mktemp("restarted")
    with cluster(folder, "--nodes", "3", "--ephemeral", "--data", str(folder / "data")) as found:
        done = quire("topics", "create", "orders", "-p", "6", servers=found.servers)
        assert done.returncode == 0, done.stderr
        yield found
        assert "Traceback" not in found.log()


def data_of(running: RunningCluster) -> str:
    return str(running.folder / "data")


def restart(running: RunningCluster, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return quire("cluster", "restart", "--data", data_of(running), *arguments)


def controller(running: RunningCluster) -> int:
    described: dict[str, Any] = json.loads(quire("quorum", "describe", "--json", servers=running.servers).stdout)
    return int(described["leader_id"])


def test_all_nodes_are_restarted_and_the_active_controller_comes_last(running: RunningCluster) -> None:
    before, last = running.pids(), controller(running)
    done = restart(running, "--rolling")
    assert done.returncode == 0, done.stderr
    *nodes, summary = done.stdout.decode().splitlines()
    order = [int(re.fullmatch(r"node (\d): serves again after .* s, in sync after .* s", line)[1]) for line in nodes]  # type: ignore[index]
    assert sorted(order) == [1, 2, 3] and order[-1] == last
    assert summary.startswith("3 nodes restarted in ")
    after = running.pids()
    assert all(after[name] != before[name] for name in before)
    status = json.loads(quire("cluster", "status", "--json", servers=running.servers).stdout)
    assert status["well"] is True


def test_one_node_is_restarted(running: RunningCluster) -> None:
    before = running.pids()
    done = restart(running, "--node", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [each["node"] for each in found["restarted"]] == [2] and found["not_restarted"] == []
    changed = {name for name, pid in running.pids().items() if pid != before[name]}
    assert changed == {"node-2"}


def test_nothing_is_restarted_if_a_partition_would_be_offline(running: RunningCluster) -> None:
    assert quire("topics", "create", "lone", "--replication-factor", "1", servers=running.servers).returncode == 0
    (described,) = json.loads(quire("topics", "describe", "lone", "--json", servers=running.servers).stdout)
    holder = described["partitions"][0]["replicas"][0]
    before = running.pids()
    done = restart(running, "--rolling", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["restarted"] == []
    error = done.stderr.decode()
    assert f"node {holder}: 1 partition would be offline, because node {holder} has the only replica: lone-0" in error
    assert "nothing was restarted; --force" in error and running.pids() == before
    assert restart(running, "--node", str(holder % 3 + 1)).returncode == 0

    may_not = quire("cluster", "check-restart", "--node", str(holder), "--wait", "600", servers=running.servers)
    assert may_not.returncode == 1 and "lone-0" in may_not.stderr.decode()
    may = quire("cluster", "check-restart", "--node", str(holder % 3 + 1), servers=running.servers)
    assert (may.returncode, may.stdout.decode()) == (0, f"node {holder % 3 + 1}: may be stopped\n")

    forced = restart(running, "--node", str(holder), "--force")
    assert forced.returncode == 0 and "--force goes on" in forced.stderr.decode()
    assert quire("topics", "delete", "--yes", "lone", servers=running.servers).returncode == 0


def test_a_node_that_is_down_holds_the_others_up_until_it_is_back(running: RunningCluster) -> None:
    """The others of a partition with min.insync.replicas=2, and of the quorum, must not stop as long as it is down."""
    paused = controller(running) % 3 + 1
    other = next(each for each in (1, 2, 3) if each not in (paused, controller(running)))
    os.kill(running.pids()[f"node-{paused}"], signal.SIGSTOP)
    try:
        until(lambda: check(running, other).returncode == 1)
        found = check(running, other, "--json")
        kinds = {each["kind"] for each in json.loads(found.stdout)["obstacles"]}
        assert "quorum" in kinds
        until(lambda: check(running, paused, "--back").returncode == 1)
    finally:
        os.kill(running.pids()[f"node-{paused}"], signal.SIGCONT)
    back = check(running, paused, "--back", "--wait", "60", "--json")
    assert back.returncode == 0 and json.loads(back.stdout) == {"node": paused, "back": True, "obstacles": []}
    assert check(running, other, "--wait", "60").returncode == 0


def check(running: RunningCluster, node: int, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return quire("cluster", "check-restart", "--node", str(node), *arguments, servers=running.servers)


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["restart", "--node", "9"], 4, "there is no node 9 in this cluster, which has 1, 2, 3"),
        (["restart"], 2, "add --rolling for all nodes, or --node ID for one"),
        (["restart", "--rolling", "--node", "2"], 2, "add --rolling for all nodes, or --node ID for one"),
    ],
)
def test_what_cannot_be_restarted_is_named(running: RunningCluster, arguments: list[str], code: int, why: str) -> None:
    done = quire("cluster", *arguments, "--data", data_of(running), servers=running.servers)
    assert (done.returncode, why in done.stderr.decode()) == (code, True), done.stderr
    unknown = check(running, 9)
    assert unknown.returncode == 4 and "there is no node 9" in unknown.stderr.decode()
    never_back = check(running, 9, "--back")
    assert (
        never_back.returncode == 1 and "node 9 is not back: the cluster does not know it" in never_back.stderr.decode()
    )


def test_ctrl_c_leaves_the_node_that_is_being_restarted_to_the_supervisor(running: RunningCluster) -> None:
    before, asked = running.pids(), running.log().count(ASKED)
    command = [*QUIRE, "cluster", "restart", "--rolling", "--data", data_of(running)]
    pipe = subprocess.PIPE
    with killed_at_the_end(subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment())) as process:
        until(lambda: running.log().count(ASKED) > asked)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and "comes back by itself" in err.decode() and b"Traceback" not in err
    until(lambda: running.brokers() == [1, 2, 3])
    assert len({name for name, pid in running.pids().items() if pid != before[name]}) == 1


def test_a_folder_without_a_running_cluster_is_named(tmp_path: Path) -> None:
    for folder, why in ((tmp_path, f"nothing answers at {FILE_NAME}"), (tmp_path / "none", "there is no folder")):
        done = quire("cluster", "restart", "--rolling", "--data", str(folder))
        assert done.returncode == 1 and why in done.stderr.decode()


def test_a_cluster_with_one_controller_is_restarted_by_force_only(tmp_path: Path) -> None:
    with cluster(tmp_path, "--nodes", "2", "--ephemeral", "--no-restart", "--data", str(tmp_path / "data")) as two:
        refused = restart(two, "--rolling")
        assert refused.returncode == 1 and "node 1 is the only controller" in refused.stderr.decode()
        before = two.pids()
        done = restart(two, "--rolling", "--force")
        assert done.returncode == 0, done.stderr
        assert not set(before.values()) & set(two.pids().values()), "a restart is not a death: --no-restart allows it"
        assert two.stop() == 0
