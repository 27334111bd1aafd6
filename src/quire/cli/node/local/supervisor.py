"""Runs the nodes of a local cluster: starts all at once, restarts one that dies, and stops all of them.

A node that cannot start the first time ends the cluster, because its error will not go away by itself. Later one that
ends is started again: at once if it had run for a while, otherwise after a back-off that doubles. When all serve,
`control_socket` in the folder of the cluster takes requests to restart one.
"""

import gc
import logging
import selectors
import signal
import socket
import time
from collections.abc import Callable, Sequence

from quire.cli.node.local.child import NodeChild
from quire.cli.node.local.control_socket import ControlSocket
from quire.cli.node.local.plan import PlannedNode
from quire.cli.node.local.readiness import when_all_answer
from quire.cli.node.local.restarts import STOP_TIMEOUT_S, Restarts
from quire.cli.node.serve import LEAVE_WITHOUT_CONTROLLER
from quire.client.shell_loop import BlockingLoop
from quire.console.stopping import Stop
from quire.console.terminal import echo

log = logging.getLogger("quire.supervisor")

FIRST_BACKOFF_S = 0.5
LAST_BACKOFF_S = 30.0
STEADY_AFTER_S = 10.0
"""A node that has run for so long is started again at once."""
BROKERS_STOP_WITHIN_S = 10.0
"""How long controllers wait for brokers that do not stop."""


class ClusterFailedError(Exception):
    """The cluster could not start or continue; the text says why."""


class Supervisor:
    def __init__(
        self, nodes: Sequence[PlannedNode], *, folder: str, restart: bool, announce: Callable[[str], None]
    ) -> None:
        """`folder` is that of the cluster.

        `announce` gets the addresses of all brokers, separated by commas, once, when all of them serve.
        """
        self._loop = BlockingLoop()
        self._folder = folder
        self._control: ControlSocket | None = None
        self._restart = restart
        self._announce = announce
        self._began = time.monotonic()
        self._is_ready = False
        self._is_stopping = False
        self._are_controllers_stopping = False
        self._failure = ""
        self._width = max(len(node.name) for node in nodes)
        self._children = [
            NodeChild(
                node,
                self._loop,
                printed=self._printed,
                ready=self._served,
                ended=self._ended,
                forked=self._forget_control,
            )
            for node in nodes
        ]
        self._restarts = Restarts(self._loop, self._children, self._start)
        self._controllers = [
            child for child, node in zip(self._children, nodes, strict=True) if node.config.topology.is_controller
        ]
        self._started_s = dict.fromkeys((node.name for node in nodes), 0.0)
        self._backoff_s = dict.fromkeys((node.name for node in nodes), 0.0)

    def run(self) -> None:
        """Returns when all nodes have stopped after SIGTERM or Ctrl-C; a second one kills them. ClusterFailedError."""
        preload()
        stop = Stop()
        try:
            with stop.wakes() as woken:
                self._loop.watch(woken, selectors.EVENT_READ, lambda _: _drain(woken))
                for child in self._children:
                    self._start(child)
                while self._goes_on():
                    self._loop.run_once(60_000)
                    if stop.asked and not self._is_stopping:
                        self._stop()
        except KeyboardInterrupt:
            raise ClusterFailedError(
                "a second signal stopped the nodes at once; the next start recovers the logs that were not closed."
            ) from None
        finally:
            for child in self._children:
                child.signal(signal.SIGKILL)
            self._close_control()
            self._loop.close()
        if self._failure:
            raise ClusterFailedError(self._failure)
        log.info("all nodes stopped")

    def _goes_on(self) -> bool:
        if any(child.pid is not None for child in self._children):
            return True
        return self._restart and self._is_ready and not self._is_stopping

    # --- Starting

    def _start(self, child: NodeChild) -> None:
        if self._is_stopping or child.pid is not None:
            return
        self._started_s[child.name] = time.monotonic()
        child.start()
        log.info("%s started pid=%d", child.name, child.pid)

    def _served(self, child: NodeChild) -> None:
        if self._is_ready:
            log.info("%s serves again at %s", child.name, child.address)
            self._restarts.served(child)
            return
        addresses = [each.address for each in self._children if each.address is not None]
        if len(addresses) == len(self._children):
            when_all_answer(self._loop, addresses, self._still_waits).when_done(self._all_answer)

    def _all_answer(self, failure: Exception | None) -> None:
        if self._is_stopping or self._is_ready:
            return
        if failure is not None:
            self._fail(f"the cluster did not become ready: {failure}")
            return
        self._is_ready = True
        gc.collect()
        log.info("%d nodes serve, started in %d ms", len(self._children), (time.monotonic() - self._began) * 1000)
        self._open_control()
        self._announce(",".join(str(child.address) for child in self._children))

    def _open_control(self) -> None:
        """Only now: a second supervisor of the folder, whose nodes cannot start, must not take the socket."""
        try:
            self._control = ControlSocket(self._loop, self._folder, self._restarts.execute)
        except OSError as error:
            log.warning("`quire cluster restart` cannot reach this cluster: %s: %s", self._folder, error.strerror)

    def _close_control(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def _forget_control(self) -> None:
        if self._control is not None:
            self._control.forget()

    def _still_waits(self, address: str, reason: str) -> None:
        log.warning(
            "the nodes run, but this machine cannot use %s yet: %s; the nodes copy from each other at the addresses "
            "that clients get, so advertised.listeners must be reachable from here too",
            address,
            reason,
        )

    def _printed(self, child: NodeChild, line: str) -> None:
        echo(f"{child.name:{self._width}} | {line}", err=True)

    # --- Ending

    def _ended(self, child: NodeChild, code: int) -> None:
        if self._is_stopping:
            if code:
                log.warning("%s %s while it stopped", child.name, _exit_reason(code))
            self._stop_controllers_after_brokers()
            self._end_controlled_shutdown()
            return
        if not self._is_ready:
            reason = child.last_line.removeprefix("quire: ") if code > 0 else ""
            self._fail(
                f"{child.name} {_exit_reason(code)} before the cluster was ready{': ' + reason if reason else '.'}"
            )
            return
        if self._restarts.ended(child, _exit_reason(code)):
            return
        if not self._restart:
            log.error("%s %s, and is not started again", child.name, _exit_reason(code))
            if not any(each.pid is not None for each in self._children):
                self._failure = f"no node is left; the last one, {child.name}, {_exit_reason(code)}."
            return
        wait_s = self._next_backoff_s(child.name)
        log.error("%s %s; it is started again%s", child.name, _exit_reason(code), f" in {wait_s:g} s" if wait_s else "")
        self._loop.call_later(wait_s * 1000, lambda: self._start(child))

    def _next_backoff_s(self, name: str) -> float:
        """None for a node that had run for a while, twice the last one otherwise."""
        wait_s = self._backoff_s[name]
        if time.monotonic() - self._started_s[name] >= STEADY_AFTER_S:
            wait_s = 0.0
        self._backoff_s[name] = min(LAST_BACKOFF_S, wait_s * 2 or FIRST_BACKOFF_S)
        return wait_s

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason
        self._stop()

    def _stop(self) -> None:
        """Brokers that are not controllers stop first: to sign them off, the controllers need a majority."""
        self._is_stopping = True
        self._close_control()
        for child in self._children:
            if child not in self._controllers:
                child.signal(signal.SIGTERM)
        self._stop_controllers_after_brokers()
        self._loop.call_later(BROKERS_STOP_WITHIN_S * 1000, self._stop_controllers)
        self._loop.call_later(STOP_TIMEOUT_S * 1000, self._stop_took_too_long)

    def _stop_controllers_after_brokers(self) -> None:
        if not any(child.pid is not None for child in self._children if child not in self._controllers):
            self._stop_controllers()

    def _stop_controllers(self) -> None:
        if not self._are_controllers_stopping:
            self._are_controllers_stopping = True
            for child in self._controllers:
                child.signal(signal.SIGTERM)

    def _end_controlled_shutdown(self) -> None:
        """Without a majority of the controllers no broker can leave the cluster, and none must wait for it."""
        running = [child for child in self._controllers if child.pid is not None]
        if 2 * len(running) <= len(self._controllers):
            for child in self._children:
                child.signal(LEAVE_WITHOUT_CONTROLLER)

    def _stop_took_too_long(self) -> None:
        for child in self._children:
            if child.pid is not None:
                log.error("%s did not stop within %d s and is killed", child.name, STOP_TIMEOUT_S)
                child.signal(signal.SIGKILL)


def _drain(woken: socket.socket) -> None:
    woken.recv(4096)


def preload() -> None:
    """Imports the remaining modules that a node needs, and hides all objects from the garbage collector.

    A collection in a child would write to every object, and so copy the memory that it shares with the others.
    """
    from quire.real.loop import new_event_loop

    new_event_loop().close()
    gc.collect()
    gc.freeze()


def _exit_reason(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
