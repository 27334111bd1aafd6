"""Restarts of nodes that a command asked the supervisor for: the node stops in order, and is started at once."""

import logging
import signal
from collections.abc import Callable, Sequence

from quire.cli.node.local.child import NodeChild
from quire.cli.node.local.control_socket import Answer, Reply
from quire.client.shell_loop import BlockingLoop

log = logging.getLogger("quire.supervisor")

STOP_TIMEOUT_S = 60.0
"""A node that does not stop within this time is killed."""


class Restarts:
    def __init__(self, loop: BlockingLoop, children: Sequence[NodeChild], start: Callable[[NodeChild], None]) -> None:
        self._loop = loop
        self._children = {child.node.id: child for child in children}
        self._start = start
        self._replies: dict[int, Reply] = {}
        self._stopping: set[int] = set()

    def execute(self, request: str, reply: Reply) -> None:
        """One request of `control_socket`."""
        match request.split():
            case ["nodes"]:
                reply({"nodes": [self._described(child) for child in self._children.values()]})
            case ["restart", number] if number.isascii() and number.isdigit():
                self._restart(int(number), reply)
            case _:
                reply({"error": f"{request!r} is neither `nodes` nor `restart ID`"})

    def _described(self, child: NodeChild) -> Answer:
        return {"id": child.node.id, "address": child.address, "pid": child.pid}

    def _restart(self, node: int, reply: Reply) -> None:
        child = self._children.get(node)
        if child is None:
            ids = ", ".join(str(each) for each in self._children)
            reply({"error": f"there is no node {node} in this cluster, which has {ids}"})
        elif self._replies:
            running = ", ".join(str(each) for each in self._replies)
            reply({"error": f"node {running} is being restarted: try again when it serves"})
        else:
            log.info("%s is restarted on request", child.name)
            self._replies[node] = reply
            if child.pid is None:
                reply({"stopped": node})
                self._start(child)
                return
            self._stopping.add(node)
            child.signal(signal.SIGTERM)
            pid = child.pid
            self._loop.call_later(STOP_TIMEOUT_S * 1000, lambda: self._kill(child, pid))

    def _kill(self, child: NodeChild, pid: int) -> None:
        if child.pid == pid:
            log.error("%s did not stop within %d s and is killed", child.name, STOP_TIMEOUT_S)
            child.signal(signal.SIGKILL)

    def ended(self, child: NodeChild, how: str) -> bool:
        """Whether the node ended because it is restarted; then it has been started again."""
        node = child.node.id
        if node in self._stopping:
            self._stopping.remove(node)
            self._replies[node]({"stopped": node})
            self._start(child)
            return True
        if node in self._replies:
            reason = child.last_line.removeprefix("quire: ")
            said = f": {reason}" if reason else ""
            self._replies.pop(node)({"error": f"node {node} {how} when it was started again{said}"})
        return False

    def served(self, child: NodeChild) -> None:
        reply = self._replies.pop(child.node.id, None)
        if reply is not None:
            reply({"serving": child.node.id, "address": child.address})
