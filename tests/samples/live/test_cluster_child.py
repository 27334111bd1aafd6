"""The cluster of `make run NODES=3`, as a process."""

import os
import signal
import socket
from pathlib import Path

import pytest

from quire.client.errors import ClientError
from quire.client.shell_blocking import BlockingClient
from quire_samples.live.cluster_child import ClusterChild, started_in
from tests.free_ports import free_cluster_port


def test_the_log_says_which_process_a_node_is() -> None:
    log = (
        "2026-01-01T10:00:00.000 INFO quire.supervisor: node-1 started pid=101\n"
        "2026-01-01T10:00:00.001 INFO quire.supervisor: node-2 started pid=102\n"
        "node-1 | 2026-01-01T10:00:01.000 INFO quire.broker: it said node-3 started pid=7\n"
        "2026-01-01T10:00:09.000 INFO quire.supervisor: node-2 started pid=203\n"
    )
    assert started_in(log) == {1: 101, 2: 203}


def test_a_killed_node_is_started_again_and_all_end_with_the_cluster(tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_cluster_port(2)}"
    log = str(tmp_path / "logs" / "nodes.log")
    cluster = ClusterChild(2, listen, str(tmp_path / "data"), log, again="make run NODES=2")
    try:
        address = cluster.wait_until_ready()
        assert len(address.split(",")) == 2
        before = cluster.pids
        assert sorted(before) == [1, 2]
        cluster.kill(2)
        while cluster.pids == before:
            os.sched_yield()
        assert cluster.pids[1] == before[1]
    finally:
        cluster.stop()
    with pytest.raises(ClientError), BlockingClient(address, request_timeout_ms=500) as client:
        client.run(client.cluster.refresh([]), 500)
    for pid in cluster.pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIG_DFL)


def test_a_port_in_use_gets_a_clear_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        cluster = ClusterChild(3, listen, str(tmp_path / "data"), str(tmp_path / "nodes.log"), again="make run NODES=3")
        with pytest.raises(SystemExit):
            cluster.wait_until_ready()
        cluster.stop()
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("quire: port ") and "in use" in first
    assert second.startswith("Elsewhere it starts with: make run NODES=3 LISTEN=127.0.0.1:")
