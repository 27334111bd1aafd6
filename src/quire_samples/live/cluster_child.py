"""A cluster on this machine as a child process: `quire start --nodes`, as any user would start it.

The nodes log to a file, which also says which process each of them is. They end with this process, however that ends.
"""

import os
import re
import signal
import subprocess
import sys

from quire.console.terminal import echo
from quire_samples.live.node_child import elsewhere, is_taken

STOP_TIMEOUT_S = 60
_STARTED = re.compile(r"quire\.supervisor: node-(\d+) started pid=(\d+)$", re.MULTILINE)
_ERROR = re.compile(r"^quire: ", re.MULTILINE)


class ClusterChild:
    """`quire start --nodes` as a child process. If a port is in use, the message suggests `again` with another port."""

    def __init__(self, nodes: int, listen: str, data: str, log: str, *, again: str) -> None:
        self.nodes = nodes
        self._listen = listen
        self._again = again
        self._log = log
        os.makedirs(os.path.dirname(log), exist_ok=True)
        arguments = ["start", "--nodes", str(nodes), "--listen", listen, "--data", data]
        with open(log, "wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "quire.testing.launch", str(os.getpid()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for this process, which then stops the cluster in order
            )

    @property
    def pids(self) -> dict[int, int]:
        """Node id -> process id, also of nodes that were started again."""
        with open(self._log, encoding="utf-8", errors="replace") as file:
            return started_in(file.read())

    def wait_until_ready(self) -> str:
        """Returns the addresses of all nodes. If the cluster does not start, the reason is on standard error."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().strip()
        if not line.startswith("ready "):
            code = self._process.wait(STOP_TIMEOUT_S) or 1
            with open(self._log, encoding="utf-8", errors="replace") as file:
                said = file.read()
            first = _ERROR.search(said)
            echo(
                said[first.start() :].rstrip() if first else f"quire: the cluster did not start: see {self._log}",
                err=True,
            )
            if is_taken(self._listen):
                echo(f"Elsewhere it starts with: {self._again} LISTEN={elsewhere(self._listen)}", err=True)
            raise SystemExit(code)
        return line.removeprefix("ready ")

    def kill(self, node: int) -> None:
        """With SIGKILL, as a fault would. The cluster starts the node again."""
        os.kill(self.pids[node], signal.SIGKILL)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def started_in(log: str) -> dict[int, int]:
    """The last process of each node."""
    return {int(node): int(pid) for node, pid in _STARTED.findall(log)}
