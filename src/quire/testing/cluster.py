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
from typing import TYPE_CHECKING, Literal, Self

from quire.testing.cluster_nodes import ClusterNodes
from quire.testing.node_process import ClusterError
from quire.testing.requested_faults import RequestedFaults, UnusedFaultError, unused_sentence

if TYPE_CHECKING:
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
        start_timeout_s: float = 60.0,
    ) -> None:
        if not isinstance(nodes, int) or nodes < 1:
            raise ValueError(f"a cluster has a number of nodes of at least 1, not {nodes!r}")
        given = None if data_dir is None else Path(data_dir)
        self._nodes = ClusterNodes(nodes, _texts(config), given, start_timeout_s)
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
        return f"Cluster({self._nodes.address or 'not started'})"

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, or `host:port,host:port,...` for several nodes, as every Kafka client expects it.

        It stays the same through `kill` and `restart`.
        """
        if not self._nodes.address:
            raise ClusterError("the cluster is not started: use `with Cluster() as cluster:` or call start()")
        return self._nodes.address

    @property
    def nodes(self) -> list[int]:
        """The ids of all nodes."""
        return list(self._nodes.ids)

    @property
    def pids(self) -> dict[int, int]:
        """Node id -> process id of the running nodes."""
        return self._nodes.pids

    @property
    def data_dir(self) -> Path:
        """The folder of the data; it stays the same through `kill` and `restart`.

        Several nodes have `node-1` and so on in it.
        """
        return self._nodes.data_dir

    @property
    def controller(self) -> int:
        """The id of the active controller. Waits until there is one; ClusterError after `start_timeout_s`."""
        from quire.testing import records

        return records.controller(self._nodes.serving_directly(), self._nodes.timeout_s)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The id of the node that leads a partition; -1 if none does."""
        from quire.testing import records

        return records.leader_of(self._nodes.serving_directly(), topic, partition, self._nodes.timeout_s)

    # --- Start and stop

    def start(self, node: int | None = None, *, wait: bool = True) -> None:
        """Starts what does not run. Returns when it serves clients, unless `wait` is False."""
        chosen = self._nodes.chosen(node)
        for id_ in chosen:
            if id_ not in self.pids:
                self._faults.end(id_, None)
        self._nodes.start(chosen, wait=wait)
        if self not in _running:
            _running.append(self)

    def stop(self, node: int | None = None) -> None:
        """Stops the cluster and removes its temporary data; or stops one node as an operator would.

        Does nothing if it was never started.
        """
        if node is not None:
            chosen = self._nodes.chosen(node)
            self._end_faults(chosen)
            self._nodes.stop(chosen)
            return
        if self in _running:
            _running.remove(self)
        try:
            self._end_faults()
        finally:
            self._nodes.stop_all()

    def kill(self, node: int | None = None) -> None:
        """Kills a node, or every node, with SIGKILL: nothing is flushed or closed, and clients are not told.

        What was acknowledged stays; `restart` starts the node on it. Its faults end.
        """
        chosen = [id_ for id_ in self._nodes.chosen(node) if id_ in self._nodes.processes]
        for id_ in chosen:
            if self._nodes.processes[id_].paused:
                self._faults.end(id_, None)  # it cannot say which of them were used
        try:
            self._end_faults(chosen)
        finally:
            for id_ in chosen:
                self._nodes.kill(id_)

    def restart(self, node: int | None = None, *, wait: bool = True) -> None:
        """Stops a node, or all, as an operator would, unless it is killed, and starts it again. Its faults end.

        It has the same port and data, so clients reconnect by themselves. Returns when it serves them, unless `wait` is
        False: a node that finds no majority of the controllers does not serve.
        """
        chosen = self._nodes.chosen(node)
        self._end_faults(chosen)
        self._nodes.stop(chosen)
        self.start(node, wait=wait)

    def pause(self, node: int | None = None) -> None:
        """Pauses a node, or every node, with SIGSTOP: connections stay open, and nothing is answered."""
        for id_ in self._nodes.chosen(node):
            self._nodes.started(id_).pause()

    def resume(self, node: int | None = None) -> None:
        """Ends `pause`: the nodes continue where they were. Does nothing if they are not paused."""
        for id_ in self._nodes.chosen(node):
            if id_ in self._nodes.processes:
                self._nodes.processes[id_].resume()

    # --- The network between several nodes

    def isolate(
        self,
        node: int,
        *,
        from_nodes: bool | Iterable[int] = True,
        from_clients: bool = True,
        one_way: bool | Literal["sent", "received"] = False,
    ) -> None:
        """Cuts a node off from other nodes (all, or those named) and from clients, until `heal`.

        It is as if the network lost every packet: connections stay open, and nothing arrives. With `one_way="sent"` (or
        True) only what the node sends is lost: it hears the others, and they do not hear it. With `one_way="received"`
        only what is sent to it is lost. Calls add up.
        """
        if one_way not in (True, False, "sent", "received"):
            raise ValueError(f'one_way is True, False, "sent" or "received", not {one_way!r}')
        self._nodes.checked(node)
        layout = self._nodes.layout
        if layout is None:
            raise ClusterError("isolate() needs a cluster of several nodes that is started: Cluster(nodes=3)")
        others = [id_ for id_ in self._nodes.ids if id_ != node] if from_nodes is True else [*(from_nodes or ())]
        for other in others:
            if self._nodes.checked(other) == node:
                raise ValueError(f"node {node} cannot be isolated from itself: name other nodes in from_nodes")
        if not others and not from_clients:
            raise ValueError("nothing would be isolated: say from_nodes, from_clients or both")
        layout.network.isolate(
            node, others, from_clients=from_clients, sent=one_way != "received", received=one_way in (False, "received")
        )

    def heal(self) -> None:
        """Ends `isolate` for all nodes."""
        if self._nodes.layout is not None:
            self._nodes.layout.network.heal()

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
        self._faults.add(call, self._nodes.chosen(node), required=required)

    def delay(self, api: str, ms: int, *, required: bool = True, node: int | None = None) -> None:
        """Delays every response to `api` ("Fetch") by `ms` milliseconds, after the node has carried out the request.

        A later call for the same API replaces the delay; 0 ends it. An unused delay is reported as in `fail_next`.
        """
        self._control(node, f"delay {api} {ms}")
        if ms:
            self._faults.add(f"delay({api!r}, {ms})", self._nodes.chosen(node), required=required)

    def _control(self, node: int | None, line: str) -> None:
        for id_ in self._nodes.chosen(node):
            self._nodes.started(id_).control(line)

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

    def _end_faults(self, nodes: Iterable[int] | None = None) -> None:
        for id_ in self._faults.nodes() & set(self._nodes.ids if nodes is None else nodes):
            node = self._nodes.processes.get(id_)
            if node is None or node.pid is None:
                self._faults.end(id_, None)
                continue
            node.resume()
            uses = [int(word) for word in node.control("uses").split()]
            node.control("clear")
            self._faults.end(id_, uses)

    # --- Topics and records

    def create_topic(
        self,
        name: str | None = None,
        partitions: int | None = None,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, str | int | bool] | None = None,
        timeout_s: float = 30.0,
    ) -> str:
        """Creates a topic and returns its name, which is unique if none is given.

        Without `partitions` it has as many as `num.partitions` says, and without `replication_factor` as many replicas
        as `default.replication.factor` says: 3 in a cluster of three nodes. `config` has topic settings by Kafka's
        names.
        """
        from quire.testing import records

        return records.create_topic(
            self._nodes.serving(), name, partitions, replication_factor, _texts(config), timeout_s
        )

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
        return records.produce(self._nodes.serving(), topic, values, headers, partition, timestamp_ms, timeout_s)

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

        With `at_least` it waits until there are this many, and raises ClusterError otherwise. Records of aborted
        transactions, and those after the start of an open one, are left out unless `read_committed` is False.
        """
        from quire.testing import records

        return records.read_all(self._nodes.serving(), topic, partition, at_least, read_committed, timeout_s)

    # --- The log

    def log(self, start: int = 0, node: int | None = None) -> str:
        """The nodes' logs from byte `start` of all of them on; from 0 it is everything since the cluster was created.

        It is printed if an exception leaves the `with` block, and pytest shows the lines of a failed test. With several
        nodes, each line begins with the name of its node.
        """
        return self._nodes.log(start, node)

    @property
    def log_size(self) -> int:
        """The `start` with which `log` shows only later lines."""
        return self._nodes.log_size()


def _texts(config: Mapping[str, str | int | bool] | None) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (config or {}).items()}
