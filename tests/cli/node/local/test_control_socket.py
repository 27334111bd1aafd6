"""The control socket of the supervisor, without nodes: who may connect, and what it refuses."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from quire.cli.node.local.control_socket import FILE_NAME, ControlSocket, Reply, short_path
from quire.client.shell_loop import BlockingLoop


class Supervised:
    """Executes requests by remembering them."""

    def __init__(self, folder: Path) -> None:
        self.loop = BlockingLoop()
        self.requests: list[str] = []
        self.replies: list[Reply] = []
        self.control = ControlSocket(self.loop, str(folder), self.execute)

    def execute(self, request: str, reply: Reply) -> None:
        self.requests.append(request)
        self.replies.append(reply)

    def run_until_asked(self, count: int = 1) -> None:
        while len(self.requests) < count:
            self.loop.run_once(5_000)


@contextmanager
def supervised(folder: Path) -> Iterator[Supervised]:
    found = Supervised(folder)
    try:
        yield found
    finally:
        found.control.close()
        found.loop.close()


@contextmanager
def connected(folder: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as client, short_path(str(folder)) as path:
        client.settimeout(30)
        client.connect(path)
        yield client


def test_a_request_is_executed_and_answered_more_than_once(tmp_path: Path) -> None:
    with supervised(tmp_path) as running, connected(tmp_path) as client:
        client.sendall(b"restart")
        client.sendall(b" 2\n")
        running.run_until_asked()
        assert running.requests == ["restart 2"]
        running.replies[0]({"stopped": 2})
        running.replies[0]({"serving": 2})
        assert client.recv(100) == b'{"stopped": 2}\n{"serving": 2}\n'


def test_only_the_user_who_runs_the_cluster_may_connect(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with supervised(tmp_path):
            assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    finally:
        os.umask(before)
    assert not (tmp_path / FILE_NAME).exists()


def test_the_socket_of_a_supervisor_that_was_killed_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(tmp_path / FILE_NAME))
    with supervised(tmp_path) as running, connected(tmp_path) as client:
        client.sendall(b"nodes\n")
        running.run_until_asked()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux reaches long paths through a descriptor")
def test_a_folder_with_a_long_path_has_one_too(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    with supervised(deep) as running, connected(deep) as client:
        client.sendall(b"nodes\n")
        running.run_until_asked()


def test_a_client_that_goes_away_hears_nothing_and_harms_nobody(tmp_path: Path) -> None:
    with supervised(tmp_path) as running:
        with connected(tmp_path) as client:
            client.sendall(b"restart 2\n")
            running.run_until_asked()
        running.loop.run_once(5_000)
        running.replies[0]({"stopped": 2})
        with connected(tmp_path) as client:
            client.sendall(b"nodes\n")
            running.run_until_asked(2)


def test_a_request_that_is_too_long_closes_the_connection(tmp_path: Path) -> None:
    with supervised(tmp_path) as running, connected(tmp_path) as client:
        client.sendall(b"x" * 1_000)
        while running.control.connections or not is_closed(client):
            running.loop.run_once(5_000)
        assert running.requests == []


def is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(100) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_the_number_of_connections_is_limited(tmp_path: Path) -> None:
    with supervised(tmp_path) as running, ExitStack() as stack:
        for number in range(20):
            stack.enter_context(connected(tmp_path))
            running.loop.run_once(5_000)
            assert running.control.connections == min(number + 1, 16)
