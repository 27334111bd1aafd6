"""The proxies of a cluster of several nodes, which run in a process of their own (`gateway`). Only `Cluster` uses this.

Nodes tell each other and their clients the addresses of proxies, so every connection passes through one.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from quire.testing.gateway import CLIENTS, NODES
from quire.testing.node_process import ClusterError


class NodePorts:
    """Where one node listens, and where its proxies do."""

    __slots__ = ("clients", "clients_proxy", "controller", "controller_proxy", "nodes", "nodes_proxy")

    def __init__(self, clients: int, nodes: int, controller: int) -> None:
        """`controller` is 0 for a node that is only a broker."""
        self.clients = clients
        self.nodes = nodes
        self.controller = controller
        self.clients_proxy = self.nodes_proxy = self.controller_proxy = 0


class ClusterNetwork:
    """`ports` has the ports of each node by its id; those of the proxies are filled in."""

    def __init__(self, ports: dict[int, NodePorts], folder: Path) -> None:
        self._lock = threading.Lock()
        self._ids = list(ports)
        self.from_clients: set[int] = set()
        """The nodes that clients cannot use."""
        self.from_nodes: set[int] = set()
        """The nodes that other nodes do not hear, or that do not hear others."""
        gates = [gate for id_, node in ports.items() for gate in _gates(id_, node)]
        command = [sys.executable, "-m", "quire.testing.launch", str(os.getpid()), "--remove", str(folder)]
        with (folder / "network.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-m", "quire.testing.gateway", *(f"{id_}:{kind}:{port}" for id_, kind, port in gates)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
            )
        proxies = iter(self._read_line().split())
        for node in ports.values():
            node.clients_proxy, node.nodes_proxy = int(next(proxies)), int(next(proxies))
            if node.controller:
                node.controller_proxy = int(next(proxies))

    def up(self, node: int) -> None:
        """The node is being started: its proxies accept connections as soon as it listens."""
        self._tell([f"up {node}"])

    def down(self, node: int) -> None:
        """The node is about to end: its proxies refuse connections from now on."""
        self._tell([f"down {node}"])

    def isolate(
        self, node: int, others: Sequence[int], *, from_clients: bool, sent: bool = True, received: bool = True
    ) -> None:
        """Nothing that `node` has `sent` arrives at `others` and clients, and nothing from them is `received` by it."""
        far: list[int | str] = [*others, *([CLIENTS] if from_clients else [])]
        cuts = [f"cut {node} {other}" for other in far if sent]
        cuts += [f"cut {other} {node}" for other in far if received]
        self._tell(cuts)
        if from_clients:
            self.from_clients.add(node)
        if others:
            self.from_nodes.add(node)

    def heal(self) -> None:
        self._tell(["heal"])
        self.from_clients.clear()
        self.from_nodes.clear()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.kill()  # it has nothing to finish
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _tell(self, lines: Iterable[str]) -> None:
        assert self._process.stdin is not None
        with self._lock:
            for line in lines:
                self._process.stdin.write(f"{line}\n".encode())
                answer = self._read_line()
                if answer != "ok":
                    raise ClusterError(f"the proxies of the cluster answered {answer!r} to {line!r}")

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()


def _gates(id_: int, node: NodePorts) -> list[tuple[int, str, int]]:
    gates = [(id_, CLIENTS, node.clients), (id_, NODES, node.nodes)]
    return [*gates, (id_, NODES, node.controller)] if node.controller else gates
