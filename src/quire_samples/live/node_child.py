"""A node as a child process: `quire start`, as any user would start it.

It stops when the pipe to its standard input closes, so it ends with this process, however that ends.
"""

import socket
import subprocess
import sys

from quire.console.terminal import echo

PORTS_BETWEEN = 100  # not 1: the port after the one in use is that node's controller port
READY_TIMEOUT_S = 30
STOP_TIMEOUT_S = 15


class NodeChild:
    """`quire start` as a child process. If the port is in use, the message suggests `again` with another port."""

    def __init__(self, listen: str, data: str, *, again: str) -> None:
        arguments = ["start", "--listen", listen, "--data", data, "--log-level", "warning", "--control-stdin"]
        self._listen = listen
        self._again = again
        self._process = subprocess.Popen(
            [sys.executable, "-m", "quire", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for this process, which then stops the node in order
        )

    nodes = 1

    @property
    def pids(self) -> dict[int, int]:
        """Node id -> process id."""
        return {1: self._process.pid}

    def wait_until_ready(self) -> str:
        """Returns its HOST:PORT. If the node does not start, it has printed the reason on standard error itself."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().strip()
        if not line.startswith("ready "):
            code = self._process.wait(READY_TIMEOUT_S) or 1
            if is_taken(self._listen):
                echo(f"Elsewhere it starts with: {self._again} LISTEN={elsewhere(self._listen)}", err=True)
            raise SystemExit(code)
        return line.removeprefix("ready ")

    def wait(self, seconds: float | None) -> int | None:
        """The exit code, or None if the node still runs after this time; `seconds` None waits without a limit."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self.wait(STOP_TIMEOUT_S) is None:
            self._process.kill()
            self._process.wait()


def is_taken(listen: str) -> bool:
    """Whether another process listens at the port for clients, or at the controller's after it."""
    host, _, port = listen.rpartition(":")
    try:
        for number in (int(port), int(port) + 1):
            socket.create_server((host, number)).close()
    except (OSError, ValueError, OverflowError):
        return port.isdigit()
    return False


def elsewhere(listen: str) -> str:
    host, _, port = listen.rpartition(":")
    return f"{host}:{(int(port) + PORTS_BETWEEN) % 65536}"
