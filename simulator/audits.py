"""The audits of a run: which logs are being read from start to end, and what waits for it.

After a power loss of a node an auditor reads the partitions that may have lost records, before other clients reach the
node; then the node's gate opens. Other audits read while clients write. A node has one audit at a time, which ends with
the node.
"""

from collections.abc import Sequence

from simulator.clients.auditor import Auditor
from simulator.clients.client import Scene
from simulator.tasks import Task


class Audits:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._count = 0
        self._running: dict[tuple[str, ...], tuple[Auditor, Task]] = {}

    @property
    def running(self) -> bool:
        return bool(self._running)

    def start(self, nodes: Sequence[str], *, after_power_loss: bool, alone: bool = False) -> None:
        """Reads the partitions of these nodes; `alone` if no client writes meanwhile."""
        self._count += 1
        key = tuple(nodes)
        auditor = Auditor(self._scene, f"auditor-{self._count}", key, after_power_loss=after_power_loss, alone=alone)

        async def audit() -> None:
            await auditor.run()
            del self._running[key]
            if after_power_loss:
                for node in nodes:
                    self._scene.gates[node].open()

        self._running[key] = auditor, Task(self._scene.clock, auditor.name, audit())

    def end(self, node: str) -> None:
        """The node has ended."""
        for key in [key for key in self._running if node in key]:
            auditor, task = self._running.pop(key)
            task.end()
            auditor.close()
