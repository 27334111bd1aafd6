"""`Cluster` runs a real node and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import Cluster, ClusterError, WireConnection

ALL = MetadataRequest(topics=None)
PATIENCE_S = 60.0
LONG_MS = 600_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config={"num.partitions": 3}) as running:
        yield running


def ask(cluster: Cluster) -> MetadataResponse:
    with WireConnection(cluster.bootstrap_servers) as connection:
        return connection.call(ALL, 12, MetadataResponse)


def create(cluster: Cluster, name: str) -> int:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)])
    with WireConnection(cluster.bootstrap_servers) as connection:
        return connection.call(request, 7, CreateTopicsResponse).topics[0].error_code


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.01)


def test_it_serves_at_its_address_and_names_its_processes(cluster: Cluster) -> None:
    (broker,) = ask(cluster).brokers
    assert f"{broker.host}:{broker.port}" == cluster.bootstrap_servers
    assert list(cluster.pids) == [broker.node_id]
    assert all(is_running(pid) for pid in cluster.pids.values())


def test_settings_reach_the_node(cluster: Cluster) -> None:
    assert create(cluster, "three-partitions") == ErrorCode.NONE
    (topic,) = [found for found in ask(cluster).topics if found.name == "three-partitions"]
    assert len(topic.partitions) == 3


def test_two_clusters_live_side_by_side(cluster: Cluster) -> None:
    with Cluster() as other:
        assert other.bootstrap_servers != cluster.bootstrap_servers
        assert create(other, "only-here") == ErrorCode.NONE
        assert "only-here" not in [topic.name for topic in ask(cluster).topics]


def test_nothing_is_left_when_it_ends() -> None:
    with Cluster() as cluster:
        (pid,) = cluster.pids.values()
        folder = cluster.data_dir.parent
        assert folder.exists()
    assert not is_running(pid)
    assert not folder.exists()
    assert cluster.pids == {}
    with pytest.raises(ClusterError, match="not started"):
        _ = cluster.bootstrap_servers


def test_a_requested_failure_comes_as_often_as_asked_for(cluster: Cluster) -> None:
    cluster.fail_next("CreateTopics", "THROTTLING_QUOTA_EXCEEDED", count=2)
    codes = [create(cluster, f"failing-{n}") for n in range(3)]
    assert codes == [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 2 + [ErrorCode.NONE]


def test_a_requested_failure_can_be_taken_back(cluster: Cluster) -> None:
    cluster.fail_next("CreateTopics", "THROTTLING_QUOTA_EXCEEDED", count=99, required=False)
    cluster.clear_faults()
    assert create(cluster, "not-failing") == ErrorCode.NONE


def test_answers_are_delayed_and_no_longer(cluster: Cluster) -> None:
    cluster.delay("Metadata", 300)
    began = time.monotonic()
    ask(cluster)
    assert time.monotonic() - began >= 0.29
    cluster.delay("Metadata", LONG_MS, required=False)
    cluster.delay("Metadata", 0)
    assert ask(cluster).brokers, "the answer comes before the time-out"


@pytest.mark.parametrize(
    ("api", "error", "wrong"),
    [
        ("NoSuchApi", "NOT_LEADER_OR_FOLLOWER", "no API 'NoSuchApi'"),
        ("Produce", "NO_SUCH_ERROR", "no error 'NO_SUCH_ERROR'"),
    ],
)
def test_a_failure_that_does_not_exist_is_refused(cluster: Cluster, api: str, error: str, wrong: str) -> None:
    with pytest.raises(ClusterError, match=wrong):
        cluster.fail_next(api, error)
    assert ask(cluster).brokers


def test_data_and_address_stay_through_kill_and_restart() -> None:
    with Cluster() as cluster:
        address = cluster.bootstrap_servers
        assert create(cluster, "kept") == ErrorCode.NONE
        ends: list[Callable[[], None]] = [cluster.kill, lambda: None]
        for end in ends:
            (pid,) = cluster.pids.values()
            end()
            cluster.restart()
            wait_until_gone(pid)
            assert cluster.bootstrap_servers == address
            assert "kept" in [topic.name for topic in ask(cluster).topics]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a port cannot be kept free")
def test_no_other_program_gets_the_port_while_the_node_is_down() -> None:
    with Cluster() as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        cluster.kill()
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind((host, int(port)))
        cluster.restart()
        assert ask(cluster).brokers[0].port == int(port)


def test_a_given_data_dir_is_used_and_kept(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("data") / "here"
    for expected in ([], ["kept"]):
        with Cluster(data_dir=folder) as cluster:
            assert [topic.name for topic in ask(cluster).topics] == expected
            create(cluster, "kept")
    assert (folder / "meta.properties").exists()


def test_it_stops_cleanly(tmp_path: Path) -> None:
    for _ in range(3):  # it once depended on which of two requests to stop came first
        with Cluster(data_dir=tmp_path / "data"):
            pass
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_bad_setting_is_named_and_no_process_stays() -> None:
    with pytest.raises(ClusterError, match=r"the node ended with exit code 2 (?s:.)*no\.such\.setting"):
        Cluster(config={"no.such.setting": "1"}).start()


def test_settings_in_the_environment_do_not_reach_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_NO_SUCH_SETTING", "1")
    monkeypatch.setenv("QUIRE_NODE_ID", "5")
    with Cluster() as cluster:
        assert ask(cluster).brokers[0].node_id == 1


def test_the_log_is_printed_when_a_block_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), Cluster() as cluster:
        address = cluster.bootstrap_servers
        _ = 1 / 0
    assert f"log of Cluster({address})" in capfd.readouterr().err


TEST_PROCESS = """
    import os, signal, sys, threading, time
    from quire.testing import Cluster
    cluster = Cluster()
    if sys.argv[1] == "threaded":
        starting = threading.Thread(target=cluster.start)
        starting.start()
        starting.join()
    cluster.start()
    if sys.argv[1] == "forking" and os.fork() == 0:
        time.sleep(60)  # holds a copy of the pipe's end, as a pool of workers would
    (pid,) = cluster.pids.values()
    if sys.argv[1] == "paused":
        os.kill(pid, signal.SIGSTOP)
    print(pid, os.getpid(), flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["plain", "forking", "threaded", "paused"])
def test_nothing_outlives_a_test_process_that_is_killed(kind: str, tmp_path: Path) -> None:
    script = textwrap.dedent(TEST_PROCESS)
    with subprocess.Popen(
        [sys.executable, "-c", script, kind],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        node_pid = int(process.stdout.readline().split()[0])
        assert is_running(node_pid)
        assert list(tmp_path.iterdir())
        os.kill(process.pid, signal.SIGKILL)
        wait_until_gone(node_pid)
        if kind == "forking":
            os.killpg(process.pid, signal.SIGKILL)
    assert not list(tmp_path.iterdir())


def test_files_of_a_killed_test_process_are_removed_by_the_next_cluster_and_no_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Cluster() as living:
        living.kill()
        folder = living.data_dir.parent
        left_over = tmp_path / "quire-testing-abcdefgh"
        left_over.mkdir()
        (left_over / ".lock").touch()
        with Cluster():
            assert folder.exists(), "its cluster may start again"
            assert not left_over.exists()
