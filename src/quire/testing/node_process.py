"""One node as a child process: started, waited for, talked to through its standard input, and ended.

The node's standard output carries the `ready HOST:PORT` line and one answer per control line; its standard error is its
log and goes to a file, so a node that logs much never waits for a reader. Guarantees that `start` either returns with
the node serving or raises `ClusterError` with the end of the log and no process left. Called by `Cluster` only.
"""

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

_LOG_TAIL_LINES = 40


class ClusterError(RuntimeError):
    """The node could not be started, or did not do what it was told; the message ends with its log."""


class NodeProcess:
    __slots__ = ("_arguments", "_log_path", "_process", "_received", "_timeout_s", "address")

    def __init__(self, arguments: Sequence[str], log_path: Path, timeout_s: float) -> None:
        self._arguments = list(arguments)
        self._log_path = log_path
        self._timeout_s = timeout_s
        self._received = bytearray()
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    @property
    def pid(self) -> int | None:
        """The process id, or None when it does not run."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def start(self) -> None:
        assert self.pid is None, "already running"
        # The parent-death signal belongs to the thread that forked, and only the main thread lives as long as we do.
        main_thread = threading.current_thread() is threading.main_thread()
        command = [sys.executable, "-m", "quire.testing.launch", str(os.getpid() if main_thread else 0)]
        # Settings in the environment are the developer's, not the test's.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("QUIRE_")}
        self._received.clear()
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env=environment,
            )
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

    def control(self, line: str) -> None:
        """Sends one control line and waits until the node says it is done."""
        if self.pid is None:
            raise ClusterError(f"cannot ask for {line!r}: the node does not run; its log ends:\n{self.log_tail()}")
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        answer = self._read_line()
        if answer is not None and answer.startswith("error: "):
            raise ClusterError(f"{line!r} was refused: {answer.removeprefix('error: ')}")
        if answer != "ok":
            raise ClusterError(f"the node answered {answer or 'nothing'!r} to {line!r}")

    def stop(self) -> None:
        """Ends the node as an operator would; by force when it does not follow in time."""
        if self._process is None:
            return
        if self._process.poll() is None:
            # The end of its standard input would tell it too: twice is "at once".
            self._process.send_signal(signal.SIGTERM)
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
        """SIGKILL: nothing is flushed, closed or said."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
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
        """The next line of standard output; None when it ends or the time is up."""
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
