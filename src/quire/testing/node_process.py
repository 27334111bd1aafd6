"""One node as a child process: starting it, controlling it through its standard input, and stopping it.

The node's standard output has the `ready HOST:PORT` line and one line for each control line; its standard error is its
log and goes to a file, so that a node that logs much never waits for a reader. `wait_until_ready` either returns when
the node serves clients, or raises `ClusterError` with the end of the log and leaves no process. Only `Cluster` uses
this.
"""

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_LOG_TAIL_LINES = 40


class ClusterError(RuntimeError):
    """The node could not be started, or a control line failed; the message ends with its log."""


class NodeProcess:
    """`folder` is removed by the process if this one ends first. The log goes to a file in it, `NAME.log`."""

    __slots__ = (
        "_arguments",
        "_controlling",
        "_folder",
        "_log_path",
        "_process",
        "_received",
        "_stopping",
        "_timeout_s",
        "address",
        "environment",
        "paused",
    )

    def __init__(self, arguments: Sequence[str], folder: Path, timeout_s: float, name: str = "node") -> None:
        self._arguments = list(arguments)
        self._folder = folder
        self._log_path = folder / f"{name}.log"
        self._timeout_s = timeout_s
        self._controlling = threading.Lock()
        self.environment: dict[str, str] = {}
        """Variables that the process gets beside those of this one."""
        self.paused = False
        self._stopping = False
        self._received = bytearray()
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    @property
    def pid(self) -> int | None:
        """The process id, or None if it is not running."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def start(self) -> None:
        assert self.pid is None, "already running"
        command = [sys.executable, "-m", "quire.testing.launch", str(os.getpid()), "--remove", str(self._folder)]
        # Settings in the environment belong to the developer, not to the test.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("QUIRE_")}
        self._received.clear()
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env=environment | self.environment,
            )

    def wait_until_ready(self) -> None:
        assert self._process is not None, "start it first"
        line = self._read_line()
        if line is None or not line.startswith("ready "):
            exit_code = self._process.poll() if line is None else None
            self.kill()
            happened = "did not become ready" if exit_code is None else f"ended with exit code {exit_code}"
            said = f" but said {line!r}" if line else ""
            raise ClusterError(
                f"the node {happened}{said} within {self._timeout_s:g} s; its log ends:\n{self.log_tail()}"
            )
        self.address = line.removeprefix("ready ").split()[0]

    def control(self, line: str) -> str:
        """Sends one control line, waits until the node has carried it out, and returns what follows `ok`."""
        if self.paused:
            raise ClusterError(f"cannot ask for {line!r}: the node is paused; call resume() first")
        if self.pid is None:
            raise ClusterError(f"cannot ask for {line!r}: the node does not run; its log ends:\n{self.log_tail()}")
        assert self._process is not None and self._process.stdin is not None
        with self._controlling:
            self._process.stdin.write(line.encode() + b"\n")
            answer = self._read_line()
        if answer is not None and answer.startswith("error: "):
            raise ClusterError(f"{line!r} was refused: {answer.removeprefix('error: ')}")
        if answer is None or answer.split()[:1] != ["ok"]:
            raise ClusterError(f"the node answered {answer or 'nothing'!r} to {line!r}")
        return answer.removeprefix("ok").strip()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, and nothing is answered until `resume`."""
        if self.pid is None:
            raise ClusterError(f"cannot pause: the node does not run; its log ends:\n{self.log_tail()}")
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Ends `pause`. Does nothing if the node is not paused."""
        if self._process is not None and self.paused:
            self._process.send_signal(signal.SIGCONT)
        self.paused = False

    def begin_stop(self) -> None:
        """Tells the node to stop as an operator would; `stop` waits for it."""
        self.resume()  # or it could not act on the signal
        if not self._stopping and self.pid is not None:
            assert self._process is not None
            # The end of its standard input is a stop too, and a second one would make it stop at once.
            self._process.send_signal(signal.SIGTERM)
            self._stopping = True

    def leave(self) -> None:
        """Tells a node that stops that it is not to wait for a controller."""
        if self._stopping and self.pid is not None:
            assert self._process is not None and self._process.stdin is not None
            with suppress(BrokenPipeError):
                self._process.stdin.write(b"leave\n")

    def stop(self) -> None:
        """Stops the node as an operator would, and kills it if it does not stop in time."""
        self.begin_stop()
        if self._process is None:
            return
        try:
            self._process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ClusterError(
                f"the node did not stop within {self._timeout_s:g} s and was killed; its log ends:\n{self.log_tail()}"
            ) from None
        self._close_pipes()
        self._process = None

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, closed or logged."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self.paused = False
        self._close_pipes()
        self._process = None

    def log(self, start: int = 0) -> str:
        """The log from byte `start` on."""
        try:
            with self._log_path.open("rb") as log:
                log.seek(start)
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def log_size(self) -> int:
        try:
            return self._log_path.stat().st_size
        except FileNotFoundError:
            return 0

    def log_tail(self) -> str:
        lines = self.log().splitlines()[-_LOG_TAIL_LINES:]
        return "\n".join(lines) or "(the log is empty)"

    def _read_line(self) -> str | None:
        """The next line of standard output; None at its end or after the time-out."""
        assert self._process is not None and self._process.stdout is not None
        deadline = time.monotonic() + self._timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return None
                chunk = os.read(self._process.stdout.fileno(), 4096)
                if not chunk:
                    self._process.wait(self._timeout_s)
                    return None
                self._received += chunk
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received[:] = rest
        return line.decode(errors="replace").rstrip("\r")

    def _close_pipes(self) -> None:
        assert self._process is not None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
