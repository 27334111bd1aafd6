"""`quire start --nodes`: real processes on one machine."""

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE_S, QUIRE, environment, killed_at_the_end, quire
from tests.cli.node.local.running import cluster, is_running, until
from tests.free_ports import free_cluster_port


def test_three_nodes_serve_at_their_ports_and_stop_cleanly(tmp_path: Path) -> None:
    port = free_cluster_port(3)
    data = tmp_path / "data"
    with cluster(tmp_path, "--nodes", "3", "--data", str(data), "--listen", f"127.0.0.1:{port}") as running:
        expected = ",".join(f"127.0.0.1:{port + 10 * number}" for number in range(3))
        assert running.first_line == f"ready {expected}\n"
        assert running.brokers() == [1, 2, 3]
        assert running.stop() == 0
        log = running.log()
        for number in (1, 2, 3):
            assert f"node-{number} | " in log
            assert (data / f"node-{number}" / ".kafka_cleanshutdown").exists()
        assert log.count("stopped cleanly") == 3
        assert running.process.stdout is not None and running.process.stdout.read() == b""


def test_brokers_that_are_no_controllers_stop_before_the_controllers(tmp_path: Path) -> None:
    with cluster(tmp_path, "--nodes", "5", "--ephemeral") as running:
        assert running.stop() == 0
        stopped = re.findall(r"node-(\d) \| .*stopped cleanly", running.log())
        assert sorted(stopped[:2]) == ["4", "5"] and sorted(stopped[2:]) == ["1", "2", "3"]
        assert "controlled shutdown" not in running.log()


def test_a_node_that_is_killed_is_started_again_and_finds_its_data(tmp_path: Path) -> None:
    with cluster(tmp_path, "--nodes", "3", "--ephemeral") as running:
        first = running.pids()
        os.kill(first["node-2"], signal.SIGKILL)
        until(lambda: "node-2 serves again at" in running.log())
        until(lambda: running.brokers() == [1, 2, 3])
        assert "node-2 was ended by SIGKILL; it is started again" in running.log()
        again = running.pids()
        assert again["node-2"] != first["node-2"] and again["node-1"] == first["node-1"]
        assert running.stop(signal.SIGINT) == 0


def test_the_only_controller_does_not_found_another_cluster_when_its_directory_vanished(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with cluster(tmp_path, "--nodes", "2", "--ephemeral", "--data", str(data)) as running:
        shutil.rmtree(data / "node-1")
        os.kill(running.pids()["node-1"], signal.SIGKILL)
        until(lambda: "node-1 ended with exit code 1; it is started again" in running.log())
        assert f"node-1 | quire: {data}/node-1 is not formatted, although it was: restore it" in running.log()
        assert not (data / "node-1").exists()
        assert running.stop() == 0


def test_a_node_that_is_killed_stays_down_if_asked_to(tmp_path: Path) -> None:
    with cluster(tmp_path, "--nodes", "2", "--ephemeral", "--no-restart") as running:
        pids = running.pids()
        os.kill(pids["node-2"], signal.SIGKILL)
        until(lambda: "node-2 was ended by SIGKILL, and is not started again" in running.log())
        os.kill(pids["node-1"], signal.SIGKILL)
        assert running.process.wait(PATIENCE_S) == 1
        assert "no node is left; the last one, node-1, was ended by SIGKILL" in running.log()


def test_nodes_end_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    with cluster(tmp_path, "--nodes", "3", "--ephemeral") as running:
        pids = running.pids()
        running.process.kill()
        for pid in pids.values():
            until(lambda pid=pid: not is_running(pid))  # type: ignore[misc]


def test_a_second_signal_kills_the_nodes(tmp_path: Path) -> None:
    with cluster(tmp_path, "--nodes", "2", "--ephemeral") as running:
        os.kill(running.pids()["node-2"], signal.SIGSTOP)  # it cannot stop
        running.process.send_signal(signal.SIGINT)
        until(lambda: "node-1 | " in running.log() and "stopped cleanly" in running.log())
        assert running.stop(signal.SIGINT) == 1
        assert "a second signal stopped the nodes at once" in running.log()


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["--nodes", "0"], 2, "at least 1"),
        (["--no-restart"], 2, "add --nodes"),
        (["--nodes", "3", "--set", "node.id=4"], 2, "--nodes sets node.id itself"),
        (["--nodes", "3", "--set", "no.such.setting=4"], 2, "no.such.setting is not a setting"),
    ],
)
def test_a_failure_to_start_is_reported(arguments: list[str], code: int, why: str) -> None:
    done = quire("start", "--ephemeral", *arguments)
    assert done.returncode == code and why in done.stderr.decode(), done.stderr


def test_a_port_in_use_is_named_before_anything_starts(tmp_path: Path) -> None:
    first = free_cluster_port(3)
    port = first + 10
    with socket.create_server(("127.0.0.1", port)):
        done = quire("start", "--nodes", "3", "--data", str(tmp_path / "d"), "--listen", f"127.0.0.1:{first}")
        assert done.returncode == 1
        assert f"port {port} of 127.0.0.1 (for clients) is in use" in done.stderr.decode(), done.stderr
    assert not (tmp_path / "d").exists()


def test_an_advertised_address_that_cannot_be_reached_from_here_is_named(tmp_path: Path) -> None:
    port = free_cluster_port(2)
    advertised = f"advertised.listeners=PLAINTEXT://broker.invalid:{port}"
    process = subprocess.Popen(
        [*QUIRE, "start", "--nodes", "2", "--data", str(tmp_path), "--listen", f":{port}", "--set", advertised],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with killed_at_the_end(process):
        assert process.stderr is not None
        said = next(line.decode() for line in process.stderr if b"advertised.listeners" in line)
        assert f"cannot use broker.invalid:{port} yet" in said and "does not resolve" in said
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=PATIENCE_S)[0] == b"", "it was never ready"
        assert process.returncode == 0


def test_a_start_without_nodes_in_the_folder_of_a_cluster_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "quire-cluster.properties").write_text("nodes=3\n")
    done = quire("start", "--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert "holds a cluster, not a single node; start it with --nodes 3" in done.stderr.decode(), done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["quire-cluster.properties"]


def test_a_start_of_a_node_of_a_cluster_as_a_single_one_names_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "quire-cluster.properties").write_text("nodes=3\n")
    (tmp_path / "node-2").mkdir()
    done = quire("start", "--data", str(tmp_path / "node-2"), "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert f"start all of them with `quire start --nodes 3 --data {tmp_path}`" in done.stderr.decode(), done.stderr
    assert list((tmp_path / "node-2").iterdir()) == []
