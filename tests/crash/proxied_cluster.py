"""Three nodes behind proxies, which a test isolates from each other, with the questions of `RealCluster`.

Clients reach every node, also an isolated one.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from quire.testing import Cluster
from quire.testing.node_process import ClusterError
from tests.crash.real_cluster import SETTINGS, RealCluster, RealNode, wait_until

OneWay = Literal[False, "sent", "received"]
"""Which traffic of an isolated node is lost: all of it, what it sends, or what is sent to it."""
ONE_WAY: tuple[OneWay, ...] = (False, "sent", "received")


class ProxiedNode(RealNode):
    """A node whose process belongs to the `Cluster`; it always runs."""

    def __init__(self, node_id: int, folder: Path, address: str) -> None:
        self.id = node_id
        self.data = folder
        self.address = address

    @property
    def answers(self) -> bool:
        return True


class ProxiedCluster(RealCluster):
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nodes = {
            node_id: ProxiedNode(node_id, cluster.data_dir / f"node-{node_id}", address)
            for node_id, address in zip(cluster.nodes, cluster.bootstrap_servers.split(","), strict=True)
        }

    def wait_for_controller(self, *, other_than: int | None = None) -> int:
        """According to the nodes that are not isolated."""
        found: list[int] = []

        def is_there() -> bool:
            with suppress(ClusterError):
                found.append(self._cluster.controller)
            return bool(found) and found[-1] != other_than

        wait_until(is_there, "no other controller is active")
        return found[-1]

    def isolate_from_nodes(self, node_id: int, *, one_way: OneWay) -> None:
        self._cluster.isolate(node_id, from_clients=False, one_way=one_way)

    def heal(self) -> None:
        self._cluster.heal()

    def kill(self, *ids: int) -> None:
        for node_id in ids or self.nodes:
            self._cluster.kill(node_id)

    def logs(self) -> str:
        return self._cluster.log()


@contextmanager
def running_proxied_cluster(folder: Path) -> Iterator[ProxiedCluster]:
    with Cluster(nodes=3, config=SETTINGS, data_dir=folder) as cluster:
        proxied = ProxiedCluster(cluster)
        proxied.wait_until_unfenced()
        yield proxied
        assert "Traceback" not in proxied.logs()
