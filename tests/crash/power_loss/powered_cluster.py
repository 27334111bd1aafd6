"""A cluster of real processes, each on a machine that can lose power."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.crash.power_loss.machine import Machine
from tests.crash.real_cluster import RealCluster, serving


class PoweredCluster(RealCluster):
    def __init__(
        self, folder: Path, count: int = 1, settings: Mapping[str, object] | None = None, *, syncs: bool = True
    ) -> None:
        super().__init__(folder, count, settings)
        self.machines: dict[int, Machine] = {}
        for node in self.nodes.values():
            machine = self.machines[node.id] = Machine(node.data, node.folder, syncs=syncs)
            node.process.environment = machine.environment

    def lose_power(self, *ids: int, seed: int | str) -> None:
        """Cuts the power of these nodes, or of all; they do not start by themselves."""
        self.kill(*ids)
        for node_id in ids or self.nodes:
            self.machines[node_id].lose_power(f"{seed}/{node_id}")


@contextmanager
def powered_cluster(
    folder: Path, count: int = 1, settings: Mapping[str, object] | None = None
) -> Iterator[PoweredCluster]:
    """Nodes that serve."""
    cluster = PoweredCluster(folder, count, settings)
    with serving(cluster):
        yield cluster
