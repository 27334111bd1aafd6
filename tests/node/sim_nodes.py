"""Several whole nodes on one simulated network, each on its own host with its own disk, and clients beside them.

Node i is the host `node<i>`: PLAINTEXT on port 9092 if it is a broker, CONTROLLER on port 9093 if it is a controller.
The quorum is static: every node that is a controller votes.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from quire.address import Address
from quire.client.cluster import Cluster
from quire.client.link import Link
from quire.config.broker_config import BrokerConfig
from quire.controller.format import format_node, new_cluster_id
from quire.node.node import Node
from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.schema import Message
from quire.steps import Steps, perform
from simulator.clock import HostClock, SimClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.network import SimNetwork
from simulator.process import Process
from simulator.random import SimRandom

M = TypeVar("M", bound=Message)
T = TypeVar("T")

CLIENT_PORT, CONTROLLER_PORT = 9092, 9093
BOTH = "broker,controller"
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class SimNodes:
    def __init__(self, roles: Sequence[str] = (BOTH, BOTH, BOTH), seed: int = 1, **settings: str) -> None:
        self.clock = SimClock()
        self._random = SimRandom(seed)
        self.network = SimNetwork(self.clock, self._random.stream("network"))
        self.roles = dict(enumerate(roles, 1))
        self._settings = SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
        self.disks = {node_id: SimDisk(self._random.stream(f"disk {node_id}")) for node_id in self.roles}
        self.override: dict[int, dict[str, str]] = {}
        """Settings of single nodes."""
        self.nodes: dict[int, Node] = {}
        self.failures: list[str] = []
        self._lives = 0
        self._links: dict[tuple[int, int], Link] = {}
        self._format()

    # --- Nodes

    def _format(self) -> None:
        cluster_id = new_cluster_id(self._random)
        for node_id, disk in self.disks.items():
            format_node(disk, self._random, self.config(node_id), now_ms=self.clock.now_ms(), cluster_id=cluster_id)

    def config(self, node_id: int) -> BrokerConfig:
        role = self.roles[node_id]
        listeners = [f"PLAINTEXT://node{node_id}:{CLIENT_PORT}"] if "broker" in role else []
        listeners += [f"CONTROLLER://node{node_id}:{CONTROLLER_PORT}"] if "controller" in role else []
        voters = [f"{id_}@node{id_}:{CONTROLLER_PORT}" for id_, each in self.roles.items() if "controller" in each]
        return BrokerConfig(
            self._settings
            | {
                "process.roles": role,
                "node.id": str(node_id),
                "broker.rack": f"rack{node_id}",
                "log.dirs": self._settings.get("log.dirs", "/data"),
                "listeners": ",".join(listeners),
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": ",".join(voters),
            }
            | self.override.get(node_id, {})
        )

    def begin(self, node_id: int) -> Node:
        """Begins to start a node on the disk of its last life."""
        self._lives += 1
        random = self._random.stream(f"life {self._lives}")
        process = Process(self.clock)
        clock = HostClock(self.clock, process=process)
        node = self.nodes[node_id] = Node(
            self.config(node_id),
            clock=clock,
            random=random,
            disk=self.disks[node_id],
            jobs=SimJobs(clock, random.stream("jobs")),
            network=self.network.host(f"node{node_id}", process),
        )
        node.failed = lambda reason: self.failures.append(f"node {node_id}: {reason}")
        node.start()
        return node

    def start(self) -> "SimNodes":
        for node_id in self.roles:
            self.begin(node_id)
        self.until(lambda: all(node.ready.done for node in self.nodes.values()))
        return self

    def kill(self, node_id: int) -> None:
        """Ends the process; the page cache stays."""
        self.process(node_id).end()
        del self.nodes[node_id]
        self.network.crash(f"node{node_id}")
        self.disks[node_id] = self.disks[node_id].kill()

    def process(self, node_id: int) -> Process:
        """To pause and resume it."""
        clock = self.nodes[node_id].clock
        assert isinstance(clock, HostClock)
        return clock.process

    def stop(self, node_id: int) -> None:
        stopped = self.nodes[node_id].stop()
        self.until(lambda: stopped.done)
        self.kill(node_id)

    def restart(self, node_id: int) -> None:
        self.begin(node_id)
        self.until(lambda: self.nodes[node_id].ready.done)

    @property
    def leader_id(self) -> int | None:
        """The node of the active controller."""
        return next((id_ for id_, node in self.nodes.items() if node.metadata.active is not None), None)

    def others(self, node_id: int | None) -> list[int]:
        return [id_ for id_ in self.nodes if id_ != node_id]

    def until(self, condition: Callable[[], bool], limit_ms: float = 60_000) -> None:
        self.clock.run_until(lambda: condition() or bool(self.failures), limit_ms)
        assert not self.failures, self.failures

    # --- Clients

    def settle(self, pending: Pending[T], limit_ms: float = 60_000) -> T:
        self.until(lambda: pending.done, limit_ms)
        return pending.value

    def send(self, node_id: int, request: Message, *, port: int = CLIENT_PORT, version: int | None = None) -> Any:
        """A pending response of one node, over a connection of its own for each node and port."""
        link = self._links.get((node_id, port))
        if link is None:
            link = self._links[node_id, port] = Link(
                Address(f"node{node_id}", port),
                "test",
                self.clock,
                self.network.host("client"),
                self._random.stream(f"link {node_id} {port}"),
                between_nodes=True,
            )
        return link.call(request, 60_000, versions=None if version is None else (version, version))

    def ask(
        self, node_id: int, request: Message, expected: type[M], *, port: int = CLIENT_PORT, version: int | None = None
    ) -> M:
        response = self.settle(self.send(node_id, request, port=port, version=version))
        assert isinstance(response, expected), response
        return response

    def client(self) -> Cluster:
        """Quire's own client, which knows the first broker."""
        first = next(id_ for id_, role in self.roles.items() if "broker" in role)
        return Cluster(
            [Address(f"node{first}", CLIENT_PORT)],
            clock=self.clock,
            random=self._random.stream("client"),
            network=self.network.host("client"),
        )

    def run(self, steps: Steps[T]) -> T:
        outcome = self.settle(perform(steps))
        assert not isinstance(outcome, Exception), repr(outcome)
        return outcome

    def create_topic(self, node_id: int, name: str, leaders: Sequence[int]) -> CreateTopicsResponse:
        """A topic with one partition for each of `leaders`, each with one replica."""
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=[leader])
                for index, leader in enumerate(leaders)
            ],
        )
        response = self.ask(node_id, CreateTopicsRequest(topics=[topic], timeout_ms=20_000), CreateTopicsResponse)
        assert response.topics[0].error_code == ErrorCode.NONE, response
        return response
