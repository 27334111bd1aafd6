"""Several whole nodes on one simulated network, each with a disk and a clock of its own."""

from collections.abc import Callable

from quire.config.broker_config import BrokerConfig
from quire.controller.format import format_node
from quire.node.node import Node
from simulator.clock import HostClock, SimClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.network import SimNetwork
from simulator.random import SimRandom

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def settings_of(node_id: int, voters: int, extra: dict[str, str]) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://node-{node_id}:9092,CONTROLLER://node-{node_id}:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(f"{id_}@node-{id_}:9093" for id_ in range(1, voters + 1)),
        "log.dirs": "/data",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        **extra,
    }


class Member:
    """One node and its machine."""

    def __init__(self, cluster: "SimCluster", node_id: int, disk: SimDisk) -> None:
        random = SimRandom(cluster.seed).stream(f"node {node_id} {cluster.lives}")
        self.clock = HostClock(cluster.clock)
        self.disk = disk
        self.failures: list[str] = []
        config = BrokerConfig.standalone(settings_of(node_id, cluster.voters, cluster.settings))
        format_node(disk, random, config, now_ms=1, cluster_id=CLUSTER_ID)
        self.node = Node(
            config,
            clock=self.clock,
            random=random.stream("node"),
            disk=disk,
            jobs=SimJobs(self.clock, random.stream("jobs")),
            network=cluster.network.host(f"node-{node_id}"),
        )
        self.node.failed = self.failures.append


class SimCluster:
    def __init__(
        self, nodes: int = 3, *, voters: int | None = None, seed: int = 1, settings: dict[str, str] | None = None
    ) -> None:
        self.seed = seed
        self.lives = 0
        self.voters = voters or nodes
        self.settings = settings or {}
        self.clock = SimClock()
        self.network = SimNetwork(self.clock, SimRandom(seed).stream("network"))
        self.members = {node_id: Member(self, node_id, SimDisk()) for node_id in range(1, nodes + 1)}

    def __getitem__(self, node_id: int) -> Node:
        return self.members[node_id].node

    def start(self) -> "SimCluster":
        for member in self.members.values():
            member.node.start()
        return self

    def until(self, condition: Callable[[], bool], limit_ms: float = 60_000) -> None:
        self.clock.run_until(condition, limit_ms)

    @property
    def active(self) -> list[int]:
        return [node_id for node_id, member in self.members.items() if member.node.metadata.active is not None]
