"""A Quire cluster of real processes that lives as long as a `with` block.

    with Cluster(config={"num.partitions": 3}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})

Free port, data in a temporary folder, a fraction of a second to start. The port and the data stay the same through
`restart`, so clients reconnect and find their records. When an exception leaves the block, the nodes' logs are printed
to standard error. No process stays behind, not even when the test process is killed with -9; its folder is then removed
when the next cluster starts.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from quire.cli.temporary import CLUSTER_PREFIX, hold, temporary_folder
from quire.testing.node_process import ClusterError, NodeProcess

_running: list["Cluster"] = []


def running_clusters() -> list["Cluster"]:
    """The clusters of this process that were started and not stopped, for the pytest plugin."""
    return list(_running)


class Cluster:
    """`config` holds broker settings by Kafka's names. `data_dir` is kept when it is given, else temporary."""

    def __init__(
        self,
        *,
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | Path | None = None,
        start_timeout_s: float = 20.0,
    ) -> None:
        self._config = {"node.id": "1"} | {key: _text(value) for key, value in (config or {}).items()}
        self._given_data_dir = None if data_dir is None else Path(data_dir)
        self._start_timeout_s = start_timeout_s
        self._folder: Path | None = None
        self._hold = -1
        """Keeps other clusters from removing the folder while no node runs in it."""
        self._node: NodeProcess | None = None
        self._address = ""
        self._faults = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:
            print(f"--- log of {self!r} ---\n{self.log()}", file=sys.stderr)
        self.stop()

    def __repr__(self) -> str:
        return f"Cluster({self._address or 'not started'})"

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, as every Kafka client takes it."""
        if not self._address:
            raise ClusterError("the cluster is not started: use `with Cluster() as cluster:` or call start()")
        return self._address

    @property
    def pids(self) -> dict[int, int]:
        """Node id -> process id, of the nodes that run."""
        pid = self._node.pid if self._node is not None else None
        return {} if pid is None else {int(self._config["node.id"]): pid}

    @property
    def data_dir(self) -> Path:
        """Where the data is; it stays the same through `kill` and `restart`."""
        if self._given_data_dir is not None:
            return self._given_data_dir
        if self._folder is None:
            raise ClusterError("the cluster has no data: it is not started")
        return self._folder / "data"

    def start(self) -> None:
        """Returns when the cluster serves. Does nothing when it runs already."""
        if self.pids:
            return
        if self._folder is None:
            self._folder = Path(temporary_folder(CLUSTER_PREFIX))
            self._hold = hold(str(self._folder))
        node = NodeProcess(self._arguments(), self._folder / "node.log", self._start_timeout_s)
        try:
            node.start()
        except ClusterError:
            if self._node is None:
                self._remove_folder()
            raise
        self._node = node
        self._address = node.address
        self._faults = False
        if self not in _running:
            _running.append(self)

    def stop(self) -> None:
        """Ends the cluster and removes its temporary data. Does nothing when it was never started."""
        if self in _running:
            _running.remove(self)
        try:
            if self._node is not None:
                self._node.stop()
        finally:
            self._node = None
            self._address = ""
            self._remove_folder()

    def kill(self) -> None:
        """SIGKILL to every node. The data stays; `restart` starts the cluster on it."""
        if self._node is not None:
            self._node.kill()

    def restart(self) -> None:
        """Stops what runs as an operator would, and starts on the same port with the same data."""
        if self._node is not None:
            self._node.stop()
        self.start()

    def fail_next(self, api: str, error: str, count: int = 1) -> None:
        """The next `count` requests of `api` ("Produce") are answered with `error` ("NOT_LEADER_OR_FOLLOWER")."""
        self._control(f"fail_next {api} {error} {count}")

    def delay(self, api: str, ms: int) -> None:
        """Every answer to `api` ("Fetch") comes `ms` milliseconds later; 0 ends that."""
        self._control(f"delay {api} {ms}")

    def clear_faults(self) -> None:
        """Ends what `fail_next` and `delay` began."""
        if self._faults and self.pids:
            self._control("clear")
        self._faults = False

    def log(self, start: int = 0) -> str:
        """What the nodes logged from byte `start` on; from 0 it is everything since the cluster was made."""
        return self._node.log(start) if self._node is not None else ""

    @property
    def log_size(self) -> int:
        """Where `log` would have to start to show only what comes."""
        return self._node.log_size() if self._node is not None else 0

    def _control(self, line: str) -> None:
        if self._node is None:
            raise ClusterError("the cluster is not started")
        self._faults = True
        self._node.control(line)

    def _arguments(self) -> list[str]:
        listen = self._address or "127.0.0.1:0"
        arguments = ["start", "--ephemeral", "--control-stdin", "--data", str(self.data_dir), "--listen", listen]
        for key, value in self._config.items():
            arguments += ["--set", f"{key}={value}"]
        return arguments

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._hold)
            self._folder = None


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
