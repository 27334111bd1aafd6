"""A Quire cluster of real processes that runs for the duration of a `with` block.

    with Cluster(nodes=3, config={"num.partitions": 3}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader_of("orders", 0))

It uses free ports and a temporary folder, and starts in a fraction of a second. `restart` keeps the ports and the data,
so clients reconnect and find their records. If an exception leaves the block, the nodes' logs are printed to standard
error. The processes end with the test process and remove the folder, even if the test process is killed with -9.
docs/testing.md has recipes.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from quire.cli.node.temporary import CLUSTER_PREFIX, TemporaryFolder
from quire.testing.node_process import ClusterError, NodeProcess
from quire.testing.requested_faults import RequestedFaults, UnusedFaultError, unused_sentence

if TYPE_CHECKING:
    from quire.testing.cluster_layout import ClusterLayout
    from quire.testing.records import Content, Headers, Record

_running: list["Cluster"] = []


def running_clusters() -> list["Cluster"]:
    """The clusters of this process that were started and not stopped, for the pytest plugin."""
    return list(_running)


class Cluster:
    """`config` has broker settings by Kafka's names. A given `data_dir` is kept; the default is a temporary folder.

    Several nodes have the ids 1, 2, 3 and so on, and up to three of them are controllers. Methods that take a `node`
    apply to all nodes without it.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | Path | None = None,
        start_timeout_s: float = 20.0,
    ) -> None:
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node, not {nodes}")
        self._config = _texts(config)
        first = int(self._config.get("node.id", "1")) if nodes == 1 else 1
        self._ids = list(range(first, first + nodes))
        self._given_data_dir = None if data_dir is None else Path(data_dir)
        self._start_timeout_s = start_timeout_s
        self._folder: TemporaryFolder | None = None
        self._nodes: dict[int, NodeProcess] = {}
        self._layout: ClusterLayout | None = None
        """Of several nodes."""
        self._address = ""
        self._faults = RequestedFaults()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:
            print(f"--- log of {self!r} ---\n{self.log()}", file=sys.stderr)
        self.stop()
        unused = self._faults.take_unused()
        if kind is None and unused:
            raise UnusedFaultError(unused_sentence(unused))

    def __repr__(self) -> str:
        return f"Cluster({self._address or 'not started'})"

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, or `host:port,host:port,...` for several nodes, as every Kafka client expects it.

        It stays the same through `kill` and `restart`.
        """
        if not self._address:
            raise ClusterError("the cluster is not started: use `with Cluster() as cluster:` or call start()")
        return self._address

    @property
    def nodes(self) -> list[int]:
        """The ids of all nodes."""
        return list(self._ids)

    @property
    def pids(self) -> dict[int, int]:
        """Node id -> process id of the running nodes."""
        pids = {id_: node.pid for id_, node in self._nodes.items()}
        return {id_: pid for id_, pid in pids.items() if pid is not None}

    @property
    def data_dir(self) -> Path:
        """The folder of the data; it stays the same through `kill` and `restart`. Several nodes have `node-1` and so on
        in it."""
        if self._given_data_dir is not None:
            return self._given_data_dir
        if self._folder is None:
            raise ClusterError("the cluster has no data: it is not started")
        return Path(self._folder.path) / "data"

    @property
    def controller(self) -> int:
        """The id of the active controller. Waits until there is one, and raises ClusterError after 30 seconds."""
        from quire.testing import records

        return records.controller(self._serving(direct=True), self._start_timeout_s)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The id of the node that leads a partition; -1 if none does."""
        from quire.testing import records

        return records.leader_of(self._serving(direct=True), topic, partition, self._start_timeout_s)

    # --- Start and stop

    def start(self, node: int | None = None, *, wait: bool = True) -> None:
        """Starts what does not run. Returns when it serves clients, unless `wait` is False."""
        if self._folder is None:
            self._folder = TemporaryFolder(CLUSTER_PREFIX)
        was_started = bool(self._nodes)
        try:
            self._create_layout()
            missing = [id_ for id_ in self._chosen(node) if id_ not in self.pids]
            for id_ in missing:
                self._start_node(id_)
            for id_ in missing if wait else ():
                self._nodes[id_].wait_until_ready()
            if wait and missing:
                self._wait_until_all_answer()
        except ClusterError:
            if not was_started:
                self._stop()
            raise
        if self._layout is None:
            self._address = self._nodes[self._ids[0]].address or self._address
        if self not in _running:
            _running.append(self)

    def _create_layout(self) -> None:
        if len(self._ids) == 1 or self._layout is not None:
            return
        from quire.testing.cluster_layout import HOST, ClusterLayout

        assert self._folder is not None
        self._layout = ClusterLayout(len(self._ids), self._config, self.data_dir, Path(self._folder.path))
        self._address = ",".join(f"{HOST}:{ports.clients_proxy}" for ports in self._layout.ports.values())

    def _start_node(self, id_: int) -> None:
        assert self._folder is not None
        if self._layout is None:
            node = NodeProcess(self._arguments(), Path(self._folder.path), self._start_timeout_s)
        else:
            arguments = self._layout.arguments(id_)
            node = NodeProcess(arguments, Path(self._folder.path), self._start_timeout_s, f"node-{id_}")
            self._layout.network.up(id_)
        self._nodes[id_] = node
        node.start()
        self._faults.end(id_, None)

    def _wait_until_all_answer(self) -> None:
        """Several nodes serve when all that run know each other."""
        if self._layout is None or self._layout.network.from_nodes or self._layout.network.from_clients:
            return
        from quire.testing import records

        addresses = [self._direct_address(id_) for id_, node in self._nodes.items() if self._is_up(node)]
        if not records.wait_for_brokers(addresses, self._start_timeout_s):
            raise ClusterError(f"the nodes did not find each other within {self._start_timeout_s:g} s:\n{self.log()}")

    def stop(self, node: int | None = None) -> None:
        """Stops the cluster and removes its temporary data; or stops one node as an operator would.

        Does nothing if it was never started.
        """
        if node is not None:
            self._stop_node(self._checked(node))
            return
        if self in _running:
            _running.remove(self)
        try:
            self._end_faults()
        finally:
            self._stop()

    def _stop_node(self, id_: int) -> None:
        if id_ in self._nodes:
            self._end_faults([id_])
            self._nodes[id_].stop()

    def _stop(self) -> None:
        try:
            for node in self._nodes.values():
                node.begin_stop()  # all at once: the last one must not wait for a majority that is gone
            for node in self._nodes.values():
                node.stop()
        finally:
            for node in self._nodes.values():
                node.kill()
            self._nodes.clear()
            self._address = ""
            if self._layout is not None:
                self._layout.close()
                self._layout = None
            self._remove_folder()

    def kill(self, node: int | None = None) -> None:
        """Kills a node, or every node, with SIGKILL: nothing is flushed, closed or said to clients.

        What was acknowledged stays; `restart` starts the node on it. Its faults end.
        """
        chosen = [id_ for id_ in self._chosen(node) if id_ in self._nodes]
        for id_ in chosen:
            if self._nodes[id_].paused:
                self._faults.end(id_, None)  # it cannot say which of them were used
        try:
            self._end_faults(chosen)
        finally:
            for id_ in chosen:
                if self._layout is not None:
                    self._layout.network.down(id_)
                self._nodes[id_].kill()

    def restart(self, node: int | None = None, *, wait: bool = True) -> None:
        """Stops a node, or all, as an operator would, unless it is killed, and starts it again. Its faults end.

        It has the same port and data, so clients reconnect by themselves. Returns when it serves them, unless `wait` is
        False: a node that finds no majority of the controllers does not serve.
        """
        chosen = self._chosen(node)
        self._end_faults(chosen)
        running = [self._nodes[id_] for id_ in chosen if id_ in self._nodes]
        for process in running:
            process.begin_stop()
        for process in running:
            process.stop()
        self.start(node, wait=wait)

    def pause(self, node: int | None = None) -> None:
        """Stops a node, or every node, in its tracks with SIGSTOP: connections stay open, and nothing is answered."""
        for id_ in self._chosen(node):
            self._running_node(id_).pause()

    def resume(self, node: int | None = None) -> None:
        """Ends `pause`: the nodes continue where they were. Does nothing if they are not paused."""
        for id_ in self._chosen(node):
            if id_ in self._nodes:
                self._nodes[id_].resume()

    # --- The network between several nodes

    def isolate(
        self,
        node: int,
        *,
        from_nodes: bool | Iterable[int] = True,
        from_clients: bool = True,
        one_way: bool = False,
    ) -> None:
        """Cuts a node off from other nodes (all, or those named) and from clients, until `heal`.

        It is as if the network lost every packet: connections stay open, and nothing arrives. With `one_way` only what
        the node sends is lost: it hears the others, and they do not hear it. Calls add up.
        """
        self._checked(node)
        layout = self._layout
        if layout is None:
            raise ClusterError("isolate() needs a cluster of several nodes that is started: Cluster(nodes=3)")
        others = [id_ for id_ in self._ids if id_ != node] if from_nodes is True else [*(from_nodes or ())]
        for other in others:
            self._checked(other)
        layout.network.isolate(node, others, from_clients=from_clients, one_way=one_way)

    def heal(self) -> None:
        """Ends `isolate` for all nodes."""
        if self._layout is not None:
            self._layout.network.heal()

    # --- Faults

    def fail_next(
        self, api: str, error: str, count: int = 1, *, required: bool = True, node: int | None = None
    ) -> None:
        """The next `count` requests of `api` ("Produce") fail with `error` ("NOT_LEADER_OR_FOLLOWER"), on each node.

        The names are those of Kafka's protocol. The node answers with the error and does not carry out the request, for
        every client and every partition in it. Calls add up: the next requests meet them one after another. If no
        request at all has met the fault when it ends, the test fails with UnusedFaultError, unless `required` is False.
        """
        call = f"fail_next({api!r}, {error!r})" if count == 1 else f"fail_next({api!r}, {error!r}, {count})"
        self._control(node, f"fail_next {api} {error} {count}")
        self._faults.add(call, self._chosen(node), required=required)

    def delay(self, api: str, ms: int, *, required: bool = True, node: int | None = None) -> None:
        """Delays every response to `api` ("Fetch") by `ms` milliseconds, after the node has carried out the request.

        A later call for the same API replaces the delay; 0 ends it. An unused delay is reported as in `fail_next`.
        """
        self._control(node, f"delay {api} {ms}")
        if ms:
            self._faults.add(f"delay({api!r}, {ms})", self._chosen(node), required=required)

    def _control(self, node: int | None, line: str) -> None:
        for id_ in self._chosen(node):
            self._running_node(id_).control(line)

    def clear_faults(self) -> None:
        """Ends the effects of `fail_next`, `delay`, `pause` and `isolate`. The pytest plugin does it after a test."""
        self.resume()
        self.heal()
        self._end_faults()

    def check_faults(self) -> None:
        """Ends all faults, and raises UnusedFaultError if no request met one of them.

        Leaving the `with` block and the pytest plugin do this by themselves; call it where a cluster of your own serves
        several tests, for example in `tearDown`.
        """
        if unused := self.take_unused_faults():
            raise UnusedFaultError(unused_sentence(unused))

    def take_unused_faults(self) -> list[str]:
        """Ends all faults; returns the calls that no request met and that were not returned before."""
        self.clear_faults()
        return self._faults.take_unused()

    # --- Topics and records

    def create_topic(
        self,
        name: str | None = None,
        partitions: int | None = None,
        *,
        config: Mapping[str, str | int | bool] | None = None,
        timeout_s: float = 30.0,
    ) -> str:
        """Creates a topic and returns its name, which is unique if none is given.

        Without `partitions` it has as many as `num.partitions` says. `config` has topic settings by Kafka's names.
        """
        from quire.testing import records

        return records.create_topic(self._serving(), name, partitions, _texts(config), timeout_s)

    def produce(
        self,
        topic: str,
        *values: "Content | tuple[Content, Content]",
        key: "Content" = None,
        headers: "Headers | None" = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        timeout_s: float = 30.0,
    ) -> "list[Record]":
        """Writes one record for each value or pair (key, value); returns them when all are acknowledged.

        Keys and values are bytes, str (encoded as UTF-8) or None; the other arguments apply to all records. A record
        with a key goes to the partition that Kafka's clients choose for it, others to one partition after another from
        0 on. The topic is created if it does not exist.
        """
        from quire.testing import records

        if key is not None:
            if any(isinstance(value, tuple) for value in values):
                raise TypeError("give keys either in pairs (key, value) or with key=, not both")
            values = tuple((key, value) for value in values if not isinstance(value, tuple))
        return records.produce(self._serving(), topic, values, headers, partition, timestamp_ms, timeout_s)

    def read_all(
        self,
        topic: str,
        *,
        partition: int | None = None,
        at_least: int = 0,
        read_committed: bool = True,
        timeout_s: float = 30.0,
    ) -> "list[Record]":
        """All records of a topic, or of one partition, up to its end at the time of the call; by partition and offset.

        With `at_least` it waits until there are so many, and raises TimeoutError otherwise. Records of aborted
        transactions, and those behind the start of an open one, are left out unless `read_committed` is False.
        """
        from quire.testing import records

        return records.read_all(self._serving(), topic, partition, at_least, read_committed, timeout_s)

    # --- The log

    def log(self, start: int = 0, node: int | None = None) -> str:
        """The nodes' logs from byte `start` of all of them on; from 0 it is everything since the cluster was created.

        It is printed if an exception leaves the `with` block, and pytest shows the lines of a failed test. With several
        nodes, each line begins with the name of its node.
        """
        if self._layout is None:
            return self._nodes[self._ids[0]].log(start) if self._nodes else ""
        logs = {id_: process.log() for id_, process in self._nodes.items() if node in (None, id_)}
        lines = [
            (line[:_TIMESTAMP], f"node-{id_} | {line}") for id_, log in logs.items() for line in log.splitlines(True)
        ]
        return "".join(line for _, line in sorted(lines, key=lambda pair: pair[0]))[start:]

    @property
    def log_size(self) -> int:
        """The `start` with which `log` shows only later lines."""
        if self._layout is not None:
            return len(self.log())
        return self._nodes[self._ids[0]].log_size() if self._nodes else 0

    # --- Nodes

    def _chosen(self, node: int | None) -> list[int]:
        return list(self._ids) if node is None else [self._checked(node)]

    def _checked(self, node: int) -> int:
        if node not in self._ids:
            raise ClusterError(f"there is no node {node}, only {', '.join(map(str, self._ids))}")
        return node

    def _running_node(self, id_: int) -> NodeProcess:
        if id_ not in self._nodes:
            raise ClusterError("the cluster is not started")
        return self._nodes[id_]

    @staticmethod
    def _is_up(node: NodeProcess) -> bool:
        return node.pid is not None and not node.paused

    def _direct_address(self, id_: int) -> str:
        """Past the proxies."""
        return self._address if self._layout is None else f"127.0.0.1:{self._layout.ports[id_].clients}"

    def _serving(self, *, direct: bool = False) -> str:
        """The addresses of nodes that would answer a request; with `direct` past the proxies."""
        first = self._running_node(self._ids[0])
        up = [id_ for id_, node in self._nodes.items() if self._is_up(node)]
        if not up and first.paused:
            raise ClusterError("the cluster is paused; call resume() first")
        if not up:
            raise ClusterError(f"the cluster does not run; call restart() first. Its log ends:\n{first.log_tail()}")
        if self._layout is None:
            return self._address
        network, ports = self._layout.network, self._layout.ports
        heard = [id_ for id_ in up if id_ not in network.from_nodes | network.from_clients] or up
        if direct:
            return ",".join(self._direct_address(id_) for id_ in heard)
        return ",".join(f"127.0.0.1:{ports[id_].clients_proxy}" for id_ in heard)

    def _end_faults(self, nodes: Iterable[int] | None = None) -> None:
        for id_ in self._faults.nodes() & set(self._ids if nodes is None else nodes):
            node = self._nodes.get(id_)
            if node is None or node.pid is None:
                self._faults.end(id_, None)
                continue
            node.resume()
            uses = [int(word) for word in node.control("uses").split()]
            node.control("clear")
            self._faults.end(id_, uses)

    def _arguments(self) -> list[str]:
        """Of a single node."""
        listen = self._address or "127.0.0.1:0"
        arguments = ["start", "--ephemeral", "--control-stdin", "--data", str(self.data_dir), "--listen", listen]
        for key, value in ({"node.id": "1"} | self._config).items():
            arguments += ["--set", f"{key}={value}"]
        return arguments

    def _remove_folder(self) -> None:
        if self._folder is not None:
            self._folder.remove()
            self._folder = None


_TIMESTAMP = len("2026-01-01T00:00:00.000")


def _texts(config: Mapping[str, str | int | bool] | None) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (config or {}).items()}
