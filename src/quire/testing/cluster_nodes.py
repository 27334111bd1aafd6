"""The processes of a cluster, with their folder, ports and addresses. Only `Cluster` uses this.

A single node has no proxies, and its port is kept for it from its first start to the end of the cluster. Several nodes
are started as `ClusterLayout` describes.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from quire.cli.node.local.ports import ReservedPorts
from quire.cli.node.temporary import CLUSTER_PREFIX, TemporaryFolder
from quire.testing.node_process import ClusterError, NodeProcess

if TYPE_CHECKING:
    from quire.testing.cluster_layout import ClusterLayout

POLL_S = 0.02
_TIMESTAMP = len("2026-01-01T00:00:00.000")


class ClusterNodes:
    """`count` nodes. Methods that choose nodes mean all of them if `node` is None."""

    def __init__(self, count: int, config: dict[str, str], data_dir: Path | None, timeout_s: float) -> None:
        first = int(config.get("node.id", "1")) if count == 1 else 1
        self.ids = list(range(first, first + count))
        self.timeout_s = timeout_s
        self.address = ""
        self.processes: dict[int, NodeProcess] = {}
        self.layout: ClusterLayout | None = None
        """Of several nodes."""
        self._config = config
        self._given_data_dir = data_dir
        self._folder: TemporaryFolder | None = None
        self._port = ReservedPorts()
        """Of a single node. While the node is down, no other program may get its port."""

    # --- Which nodes

    def chosen(self, node: int | None) -> list[int]:
        return list(self.ids) if node is None else [self.checked(node)]

    def checked(self, node: int) -> int:
        if node not in self.ids:
            raise ClusterError(f"there is no node {node}, only {', '.join(map(str, self.ids))}")
        return node

    def started(self, id_: int) -> NodeProcess:
        if id_ not in self.processes:
            raise ClusterError("the cluster is not started")
        return self.processes[id_]

    @property
    def pids(self) -> dict[int, int]:
        """Node id -> process id of the running nodes."""
        pids = {id_: process.pid for id_, process in self.processes.items()}
        return {id_: pid for id_, pid in pids.items() if pid is not None}

    def _awake(self) -> list[int]:
        return [id_ for id_ in self.pids if not self.processes[id_].paused]

    # --- Where they are

    @property
    def data_dir(self) -> Path:
        if self._given_data_dir is not None:
            return self._given_data_dir
        if self._folder is None:
            raise ClusterError("the cluster has no data: it is not started")
        return Path(self._folder.path) / "data"

    def serving(self) -> str:
        """The addresses, for clients, of nodes that would answer a request."""
        if self.layout is None:
            self._reachable()
            return self.address
        ports = self.layout.ports
        return ",".join(f"127.0.0.1:{ports[id_].clients_proxy}" for id_ in self._reachable())

    def serving_directly(self) -> str:
        """The same, past the proxies."""
        return ",".join(map(self.direct_address, self._reachable()))

    def direct_address(self, id_: int) -> str:
        return self.address if self.layout is None else f"127.0.0.1:{self.layout.ports[id_].clients}"

    def _reachable(self) -> list[int]:
        """The nodes that run and are not isolated; if all are isolated, those that run."""
        first, awake = self.started(self.ids[0]), self._awake()
        if not awake and first.paused:
            raise ClusterError("the cluster is paused; call resume() first")
        if not awake:
            raise ClusterError(f"the cluster does not run; call restart() first. Its log ends:\n{first.log_tail()}")
        if self.layout is None:
            return awake
        network = self.layout.network
        return [id_ for id_ in awake if id_ not in network.from_nodes | network.from_clients] or awake

    # --- Start and stop

    def start(self, ids: Iterable[int], *, wait: bool) -> None:
        """Starts nodes that do not run. If the cluster cannot be started, it leaves no process or file."""
        if self._folder is None:
            self._folder = TemporaryFolder(CLUSTER_PREFIX)
        was_started = bool(self.processes)
        try:
            self._choose_addresses()
            missing = [id_ for id_ in ids if id_ not in self.pids]
            for id_ in missing:
                self._start_process(id_, Path(self._folder.path))
            if wait and missing:
                self._wait_until_ready(missing)
        except ClusterError:
            if not was_started:
                self.stop_all()
            raise
        if self.layout is None:
            self.address = self.processes[self.ids[0]].address or self.address

    def _choose_addresses(self) -> None:
        if self.address:
            return
        if len(self.ids) == 1:
            if "listeners" not in self._config:  # otherwise the node chooses its port itself
                self.address = f"127.0.0.1:{self._port.take()}"
                self._port.all_taken()
            return
        from quire.testing.cluster_layout import HOST, ClusterLayout

        assert self._folder is not None
        self.layout = ClusterLayout(len(self.ids), self._config, self.data_dir, Path(self._folder.path))
        self.address = ",".join(f"{HOST}:{ports.clients_proxy}" for ports in self.layout.ports.values())

    def _start_process(self, id_: int, folder: Path) -> None:
        if self.layout is None:
            process = NodeProcess(self._single_arguments(), folder, self.timeout_s)
        else:
            process = NodeProcess(self.layout.arguments(id_), folder, self.timeout_s, f"node-{id_}")
            self.layout.network.up(id_)
        self.processes[id_] = process
        process.start()

    def _single_arguments(self) -> list[str]:
        listen = self.address or "127.0.0.1:0"
        arguments = ["start", "--ephemeral", "--control-stdin", "--data", str(self.data_dir), "--listen", listen]
        for key, value in ({"node.id": "1"} | self._config).items():
            arguments += ["--set", f"{key}={value}"]
        return arguments

    def _wait_until_ready(self, ids: list[int]) -> None:
        for id_ in ids:
            self.processes[id_].wait_until_ready()
        if self.layout is not None and not self.layout.network.from_nodes | self.layout.network.from_clients:
            self._wait_until_all_know_each_other()

    def _wait_until_all_know_each_other(self) -> None:
        from quire.testing import records

        if not records.wait_for_brokers([self.direct_address(id_) for id_ in self._awake()], self.timeout_s):
            raise ClusterError(f"the nodes did not find each other within {self.timeout_s:g} s:\n{self.log()}")

    def stop(self, ids: Iterable[int]) -> None:
        """Stops nodes like an operator.

        All are stopped at once: the last one must not wait for a majority that has stopped.
        """
        processes = [self.processes[id_] for id_ in ids if id_ in self.processes]
        for process in processes:
            process.begin_stop()
        if self.layout is not None:
            controllers = [self.processes[id_] for id_, ports in self.layout.ports.items() if ports.controller]
            self._end_controlled_shutdown(processes, controllers)
        for process in processes:
            process.stop()

    def _end_controlled_shutdown(self, stopping: list[NodeProcess], controllers: list[NodeProcess]) -> None:
        """Without a majority of the controllers no broker can leave the cluster, and none must wait for it."""
        deadline = time.monotonic() + self.timeout_s
        while any(process.pid is not None for process in stopping) and time.monotonic() < deadline:
            if 2 * sum(process.pid is not None for process in controllers) <= len(controllers):
                for process in stopping:
                    process.leave()
            time.sleep(POLL_S)

    def stop_all(self) -> None:
        """Also removes the temporary data, and frees the ports."""
        try:
            self.stop(self.ids)
        finally:
            for process in self.processes.values():
                process.kill()
            self.processes.clear()
            self.address = ""
            self._port.close()
            if self.layout is not None:
                self.layout.close()
                self.layout = None
            if self._folder is not None:
                self._folder.remove()
                self._folder = None

    def kill(self, id_: int) -> None:
        if self.layout is not None:
            self.layout.network.down(id_)
        self.processes[id_].kill()

    # --- Their logs

    def log(self, start: int = 0, node: int | None = None) -> str:
        if self.layout is None:
            return self.processes[self.ids[0]].log(start) if self.processes else ""
        logs = {id_: process.log() for id_, process in self.processes.items() if node in (None, id_)}
        lines = [
            (line[:_TIMESTAMP], f"node-{id_} | {line}") for id_, log in logs.items() for line in log.splitlines(True)
        ]
        return "".join(line for _, line in sorted(lines, key=lambda pair: pair[0]))[start:]

    def log_size(self) -> int:
        if self.layout is not None:
            return len(self.log())
        return self.processes[self.ids[0]].log_size() if self.processes else 0
