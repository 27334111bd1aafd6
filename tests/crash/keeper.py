"""Restarts a node whenever it ends, as a supervisor does, so that a test may kill it at any moment."""

import os
import signal
import threading

from quire.testing.node_process import ClusterError
from tests.crash.real_cluster import RealNode, wait_until

KILLED = "ended with exit code -9"


class Keeper:
    """`kill` may also hit a node that is starting. The node's process belongs to the keeper until `finish`."""

    def __init__(self, node: RealNode) -> None:
        self._node = node
        self._changed = threading.Event()
        self._finished = False
        self._ending = threading.Lock()
        self._failure: ClusterError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        with self._ending:
            pid = self._node.process.pid
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: self._node.process.pid != pid, "a killed process has not ended")
        self._changed.set()

    def finish(self) -> None:
        """Returns when the node serves; ClusterError if it has ended without being killed."""
        self._finished = True
        self._changed.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            while self._node.process.pid is None and self._failure is None:
                self._start()
            if self._finished or self._failure is not None:
                return

    def _start(self) -> None:
        with self._ending:
            self._node.process.kill()
        try:
            self._node.start()
        except ClusterError as error:
            if KILLED not in str(error):
                self._failure = error
