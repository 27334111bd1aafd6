"""An operator who moves replicas between the data directories of nodes, while faults strike the nodes and their disks.

Some moves are slow, so all parts of them meet crashes; some are cancelled or replaced by others. In the end every move
is over, each replica has one folder on its node, and the controller knows in which directory it is.
"""

from collections.abc import Sequence

from quire.node.node import Node
from quire.protocol.errors import ApiError, ErrorCode
from simulator.clients.client import Scene, SimClient
from simulator.machine import Machine, MachineState
from simulator.random import SimRandom
from simulator.violation import Violation
from simulator.white_box.happenings import DISK_MOVE, Happenings

ENDS = "in the end a replica has one folder, in the directory that the controller knows"
PAUSE_MS = 1500.0
RATES = (20_000, 100_000, 1 << 40)
"""Bytes per second, of all moves of a node."""
TWO_DIRECTORIES = "/data/a,/data/b"
REFUSALS = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REPLICA_NOT_AVAILABLE)


def mover_settings(random: SimRandom) -> dict[str, str]:
    return {
        "log.dirs": TWO_DIRECTORIES,
        "replica.alter.log.dirs.io.max.bytes.per.second": str(random.choice(RATES)),
    }


class DiskMover(SimClient):
    def __init__(self, scene: Scene, machines: Sequence[Machine], happenings: Happenings) -> None:
        super().__init__(scene, "disk mover")
        self._machines = [machine for machine in machines if machine.is_broker]
        self._happenings = happenings
        self._was_in: dict[tuple[Node, bytes, int], str] = {}

    async def run(self) -> None:
        while not self.scene.finishing:
            await self.scene.sleep(self.random.between(0.0, PAUSE_MS))
            machine = self.random.choice(self._machines)
            node = machine.node
            if node is not None and machine.state is MachineState.SERVING:
                self._count_moved(node)
                # As an event of the node, which ends with it.
                node.clock.call_soon(lambda machine=machine, node=node: self._move(machine, node))  # type: ignore[misc]
        while not self._are_over():
            await self.back_off()

    def _move(self, machine: Machine, node: Node) -> None:
        found = [each for each in node.partitions if (each.topic, each.index) not in self.scene.damaged]
        directories = node.partitions.directories()
        if machine.state is not MachineState.SERVING or not found or len(directories) < 2:
            return
        partition, target = self.random.choice(found), self.random.choice(directories)
        self.scene.will_move(partition.topic, partition.index)
        self._was_in[node, partition.topic_id, partition.index] = node.partitions.directory_of(partition).path
        self.scene.tell(f"{self.name}: {partition} of {machine.name} to {target.path}")
        try:
            node.moves.request(partition.topic, partition.index, target.path)
        except ApiError as error:
            if error.code not in REFUSALS:
                raise Violation("errors have a cause", f"{self.name}: {error}") from error

    def _count_moved(self, node: Node) -> None:
        for partition in node.partitions:
            key = node, partition.topic_id, partition.index
            path = node.partitions.directory_of(partition).path
            if self._was_in.get(key, path) != path:
                self._happenings.count(DISK_MOVE)
                del self._was_in[key]

    def _are_over(self) -> bool:
        """Whether no replica moves and the image has the directory of each. All nodes work, and topics stay."""
        nodes = [machine.node for machine in self._machines]
        for machine, node in zip(self._machines, nodes, strict=True):
            if node is None or machine.state is not MachineState.SERVING or list(node.moves):
                return False
            self._count_moved(node)
            for partition in node.partitions:
                image = node.image.partition(partition.topic_id, partition.index)
                meta = node.partitions.directory_of(partition).meta
                assert meta is not None
                if image is None or node.node_id not in image.replicas:
                    return False
                if image.directories[image.replicas.index(node.node_id)] != meta.directory_id:
                    return False
        for machine in self._machines:
            self.check_folders(machine)
        return True

    def check_folders(self, machine: Machine) -> None:
        assert machine.node is not None
        seen: dict[str, str] = {}
        for directory in machine.node.partitions.directories():
            for name in machine.disk.peek_names(directory.path):
                if name.endswith("-future"):
                    raise Violation(ENDS, f"{directory.path}/{name} of {machine.name} is left")
                other = seen.setdefault(name, directory.path)
                if other != directory.path and directory.logs.keys() & {(name.rpartition("-")[0], _index(name))}:
                    raise Violation(ENDS, f"{name} of {machine.name} is in {other} and in {directory.path}")


def _index(name: str) -> int:
    last = name.rpartition("-")[2]
    return int(last) if last.isdecimal() else -1
