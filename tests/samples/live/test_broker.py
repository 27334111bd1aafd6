"""`make broker`, as a process."""

import signal
import socket
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE_S, environment, killed_at_the_end
from tests.free_ports import free_port


def demo(tmp_path: Path, *arguments: str, port: int) -> AbstractContextManager[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "quire_samples", "broker", "--listen", f"127.0.0.1:{port}", *arguments]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    return killed_at_the_end(process)


def nobody_listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_it_shows_records_going_through_and_ends_by_itself_twice_on_the_same_data(tmp_path: Path) -> None:
    port = free_port()
    for runs_before in (0, 1):
        with demo(tmp_path, "--seconds", "0.5", port=port) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        assert err == ""
        assert "4,000 written  4,000 read back" in out
        assert "All 4,000 records were read back" in out
        assert f'bootstrap.servers = "127.0.0.1:{port}"' in out
        assert "It keeps serving for another 0 s, or until Ctrl-C." in out
        assert ("still has its 4,000 records" in out) == bool(runs_before)
    assert (tmp_path / "quire-data" / "meta.properties").exists()
    assert nobody_listens(port)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_it_and_its_node(tmp_path: Path, number: int) -> None:
    port = free_port()
    with demo(tmp_path, port=port) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "It keeps serving until Ctrl-C.\n":
            pass
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
    assert nobody_listens(port)


def test_the_node_ends_even_when_the_demo_is_killed(tmp_path: Path) -> None:
    port = free_port()
    with demo(tmp_path, port=port) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    deadline = time.monotonic() + PATIENCE_S
    while not nobody_listens(port):
        assert time.monotonic() < deadline, "the node outlived the demo"


def test_a_port_in_use_gets_a_clear_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with demo(tmp_path, port=port) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert f"port {port} of 127.0.0.1 (for clients) is in use" in err
    elsewhere = f"127.0.0.1:{(port + 100) % 65536}"
    assert err.splitlines()[1:] == [f"Elsewhere it starts with: make broker LISTEN={elsewhere}"]
    assert out == ""
