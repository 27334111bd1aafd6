"""Three brokers and a separate controller: the metadata quorum is not affected by faults of the brokers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from quire.controller.format import new_cluster_id
from quire.raft.control_state import NO_VOTERS
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.real.random import RealRandom
from tests.crash.real_cluster import RealCluster, RealNode, serving
from tests.crash.replicated_cluster import NODES, REPLICATED
from tests.free_ports import free_ports

CONTROLLER_ID = 100


class DedicatedCluster(RealCluster):
    """`nodes` are the brokers."""

    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        random = RealRandom()
        self.cluster_id = new_cluster_id(random)
        ports = free_ports(2 * NODES + 2)
        all_nodes = {}
        for node_id in (*range(1, NODES + 1), CONTROLLER_ID):
            node_folder = folder / f"node-{node_id}"
            node_folder.mkdir(parents=True)
            all_nodes[node_id] = RealNode(node_id, node_folder, ports.pop(), ports.pop())
        self.controller = controller = all_nodes.pop(CONTROLLER_ID)
        self.nodes = all_nodes
        listens_at = f"CONTROLLER://{controller.controller_address}"
        host, _, port = controller.controller_address.rpartition(":")
        key = ReplicaKey(CONTROLLER_ID, random.uuid())
        self.voters = VoterSet([Voter(key, (Endpoint("CONTROLLER", host, int(port)),))])
        shared = REPLICATED | dict(settings)
        controller.write_config(
            controller.controller_address, shared | {"process.roles": "controller", "listeners": listens_at}
        )
        controller.format(self.cluster_id, self.voters)
        for node in self.nodes.values():
            roles = {"process.roles": "broker", "listeners": f"PLAINTEXT://{node.address}"}
            node.write_config(controller.controller_address, shared | roles)
            node.format(self.cluster_id, NO_VOTERS)

    def replace_disk(self, node_id: int) -> None:
        """Gives the broker an empty, formatted disk; its settings stay the same."""
        self.nodes[node_id].wipe()
        self.nodes[node_id].format(self.cluster_id, NO_VOTERS)

    def logs(self) -> str:
        return f"{super().logs()}\n--- controller\n{self.controller.process.log()}"


@contextmanager
def dedicated_cluster(folder: Path, **settings: object) -> Iterator[DedicatedCluster]:
    """Three brokers that serve."""
    cluster = DedicatedCluster(folder, settings)
    try:
        cluster.controller.start()
        with serving(cluster):
            yield cluster
    finally:
        cluster.controller.process.kill()
