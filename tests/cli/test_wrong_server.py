"""What a command reports if its -b leads to a server that is not a broker."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cli.command import quire, started
from tests.free_ports import free_port

COMMANDS = [("topics", "list"), ("cluster",), ("produce", "t"), ("consume", "t"), ("groups", "describe", "g")]


@pytest.fixture(scope="module")
def http() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_http_server_is_recognised(http: str, command: tuple[str, ...]) -> None:
    done = quire(*command, servers=http)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.decode() == (
        f"quire: {http} is an HTTP server, not a Kafka broker; name a broker's address with -b.\n"
    )


def test_the_controllers_port_is_recognised_and_the_right_one_named(tmp_path: Path) -> None:
    port = free_port()
    listeners = f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"
    with started("--data", str(tmp_path / "data"), "--set", f"listeners={listeners}") as node:
        for command in COMMANDS:
            done = quire(*command, servers=f"127.0.0.1:{port}")
            assert (done.returncode, done.stdout) == (3, b"")
            assert done.stderr.decode() == (
                f"quire: 127.0.0.1:{port} is the controller's port, and clients use {node.address}; "
                "name a broker's address with -b.\n"
            )
