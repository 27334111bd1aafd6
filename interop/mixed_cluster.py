"""A cluster whose nodes are Quire or Apache Kafka, each a separate process with the same `server.properties`.

The first nodes form the quorum, static or dynamic; others join it with `add`. Every node can be killed, stopped and
started again.
"""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from interop.apache_kafka import ApacheKafka
from quire.client.admin.cluster import describe_cluster
from quire.client.admin.quorum import Quorum, describe_quorum
from quire.client.admin.topic_replicas import Replicas, describe_replicas
from quire.client.admin.topics import NewTopic, create_topics, describe_topics
from quire.client.errors import ClientError
from quire.client.shell_blocking import BlockingClient
from quire.protocol import uuids
from quire.protocol.errors import ApiError
from quire.real.random import RealRandom
from tests.free_ports import free_ports
from tests.wire.clients import eventually

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
WAIT_S = 90.0
LOG = "node.log"
_HOST = "127.0.0.1"
_BOTH = "broker,controller"
_SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "8",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
soon = partial(eventually, wait_s=WAIT_S)


class NodeEndedError(AssertionError):
    """A node that should run has ended."""


class NodePlan(NamedTuple):
    """`kind` is quire or kafka."""

    id: int
    kind: str
    roles: str = _BOTH


class MixedNode:
    """One node, running or not; its folder has its settings, its data and its log."""

    def __init__(self, plan: NodePlan, folder: Path, kafka: ApacheKafka) -> None:
        self.plan = plan
        self.folder = folder
        self.data_dir = folder / "data"
        self.settings_path = folder / "server.properties"
        self.directory_id = ""
        port, controller_port = free_ports(2)
        self.address, self.controller_address = f"{_HOST}:{port}", f"{_HOST}:{controller_port}"
        self._kafka = kafka
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    @property
    def is_broker(self) -> bool:
        return "broker" in self.plan.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.plan.roles

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def format(self, settings: Mapping[str, str], options: Sequence[str]) -> None:
        listeners = []
        if self.is_broker:
            listeners.append(f"PLAINTEXT://{self.address}")
        if self.is_controller:
            listeners.append(f"CONTROLLER://{self.controller_address}")
        own = {
            "process.roles": self.plan.roles,
            "node.id": str(self.plan.id),
            "listeners": ",".join(listeners),
            "log.dirs": str(self.data_dir),
        }
        lines = [f"{key}={value}\n" for key, value in (_SETTINGS | own | dict(settings)).items()]
        self.settings_path.write_text("".join(lines))
        given = ("-c", str(self.settings_path), "--cluster-id", CLUSTER_ID, *options)
        if self.plan.kind == "kafka":
            self._kafka.tool("kafka.tools.StorageTool", "format", *given)
        else:
            subprocess.run([sys.executable, "-m", "quire", "storage", "format", *given], check=True)
        stored = (self.data_dir / "meta.properties").read_text().splitlines()
        (self.directory_id,) = [line.partition("=")[2] for line in stored if line.startswith("directory.id=")]

    def start(self) -> None:
        assert not self.runs
        with (self.folder / LOG).open("ab") as log:
            if self.plan.kind == "kafka":
                command = self._kafka.server_command(self.settings_path)
            else:
                command = [sys.executable, "-m", "quire", "start", "--config", str(self.settings_path)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)

    def become(self, kind: str) -> None:
        """The next start is of this kind, with the same settings and directories."""
        assert not self.runs
        self.plan = self.plan._replace(kind=kind)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def log(self) -> str:
        path = self.folder / LOG
        return path.read_text(errors="replace") if path.exists() else ""


class MixedCluster:
    def __init__(
        self,
        kafka: ApacheKafka,
        folder: Path,
        plans: Sequence[NodePlan],
        settings: Mapping[str, str] | None = None,
        *,
        later: Sequence[NodePlan] = (),
        static: bool = False,
    ) -> None:
        """`plans` are the first nodes; those in `later` can join, and are among the bootstrap servers."""
        self._settings = dict(settings or {})
        self._later = {plan.id: MixedNode(plan, folder / f"node-{plan.id}", kafka) for plan in later}
        self.nodes = {plan.id: MixedNode(plan, folder / f"node-{plan.id}", kafka) for plan in plans}
        voters = [node for node in self.nodes.values() if node.is_controller]
        everyone = [*self.nodes.values(), *self._later.values()]
        addresses = [node.controller_address for node in everyone if node.is_controller]
        if static:
            named = [f"{node.plan.id}@{node.controller_address}" for node in voters]
            self._settings["controller.quorum.voters"] = ",".join(named)
        else:
            self._settings["controller.quorum.bootstrap.servers"] = ",".join(addresses)
        self._static = static

    def start(self) -> None:
        """Formats and starts all, and waits until every broker is unfenced."""
        voters = [node for node in self.nodes.values() if node.is_controller]
        named = [f"{node.plan.id}@{node.controller_address}:{uuids.to_text(RealRandom().uuid())}" for node in voters]
        for node in self.nodes.values():
            first = ["--initial-controllers", ",".join(named)] if node.is_controller else ["--no-initial-controllers"]
            node.format(self._settings, [] if self._static else first)
        for node in self.nodes.values():
            node.start()
        self.wait_until_serving()

    def add(self, node_id: int) -> MixedNode:
        """Starts a node that joins; when this returns, it follows the metadata log, and a broker serves."""
        node = self.nodes[node_id] = self._later.pop(node_id)
        node.format(self._settings, [] if self._static else ["--no-initial-controllers"])
        node.start()
        self.wait_until_serving()
        soon(_although_it_may_fail(lambda: node_id in self.observers() | self.voters()))
        return node

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.nodes.values() if node.is_broker and node.runs)

    def stop(self) -> None:
        for node in self.nodes.values():
            node.kill()

    # --- Questions to the cluster

    def quorum(self, at: MixedNode | None = None) -> Quorum:
        with self._client(at) as client:
            return client.run(describe_quorum(client.cluster))

    def leader(self) -> MixedNode:
        """The active controller; waits until it is a running node."""
        found: list[MixedNode] = []

        def leads() -> bool:
            leader = self.nodes.get(self.quorum().leader_id)
            found.extend([leader] if leader is not None and leader.runs else [])
            return bool(found)

        soon(_although_it_may_fail(leads))
        return found[0]

    def voters(self) -> set[int]:
        return {voter.node_id for voter in self.quorum().voters}

    def wait_for_voters(self, voters: set[int]) -> None:
        """Waits until exactly these vote, and one of them leads."""

        def agreed() -> bool:
            quorum = self.quorum()
            return {voter.node_id for voter in quorum.voters} == voters and quorum.leader_id in voters

        soon(_although_it_may_fail(agreed))

    def observers(self) -> set[int]:
        return {observer.node_id for observer in self.quorum().observers}

    def wait_until_serving(self) -> None:
        """Waits until every running broker lists all running brokers as unfenced."""
        running = {node.plan.id: node for node in self.nodes.values() if node.runs}
        brokers = {id_ for id_, node in running.items() if node.is_broker}

        def known(node: MixedNode) -> bool:
            self._check_alive(running.values())
            with self._client(node) as client:
                return brokers <= {broker.node_id for broker in client.run(describe_cluster(client.cluster)).brokers}

        for id_ in sorted(brokers):
            soon(_although_it_may_fail(partial(known, running[id_])))

    def _check_alive(self, nodes: Iterable[MixedNode]) -> None:
        for node in nodes:
            if not node.runs:
                raise NodeEndedError(f"node {node.plan.id} ({node.plan.kind}) has ended; log at {node.folder / LOG}")

    # --- Topics

    def create_topic(
        self,
        name: str,
        at: MixedNode,
        partitions: int = 6,
        *,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
        assignments: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Sends the request to one broker, which forwards it to the active controller."""
        wanted = NewTopic(name, partitions, replicas, configs or {})
        if assignments:
            wanted = NewTopic(name, configs=configs or {}, assignments=assignments)
        with self._client(at) as client:
            (result,) = client.run(create_topics(client.cluster, [wanted])).values()
        if isinstance(result, ApiError):
            raise result

    def leaders_of(self, name: str, at: MixedNode) -> dict[int, int]:
        """Partition -> leader, according to one broker; empty if it does not know the topic."""
        with self._client(at) as client:
            topic = client.run(describe_topics(client.cluster, [name]))[name]
        if isinstance(topic, ApiError):
            return {}
        return {index: partition.leader for index, partition in topic.partitions.items()}

    def agree_on(self, name: str) -> dict[int, int]:
        """Partition -> leader; waits until all running brokers agree."""
        brokers = [node for node in self.nodes.values() if node.is_broker and node.runs]
        said: list[dict[int, int]] = []

        def same() -> bool:
            said[:] = [self.leaders_of(name, node) for node in brokers]
            return bool(said[0]) and all(each == said[0] for each in said)

        soon(_although_it_may_fail(same))
        return said[0]

    def replicas_of(self, name: str, at: MixedNode | None = None) -> list[Replicas]:
        """By partition, according to one broker."""
        with self._client(at) as client:
            return client.run(describe_replicas(client.cluster, name))

    def wait_until_in_sync(self, *names: str) -> None:
        """Waits until every replica of every partition is in sync, for all running brokers."""
        brokers = [node for node in self.nodes.values() if node.is_broker and node.runs]

        def in_sync(node: MixedNode, name: str) -> bool:
            return all(set(each.isr) == set(each.replicas) for each in self.replicas_of(name, node))

        for node in brokers:
            for name in names:
                soon(_although_it_may_fail(partial(in_sync, node, name)))

    def _client(self, at: MixedNode | None) -> BlockingClient:
        return BlockingClient(self.bootstrap_servers if at is None else at.address, request_timeout_ms=20_000)


def _although_it_may_fail(condition: Callable[[], bool]) -> Callable[[], bool]:
    """While nodes start and controllers change, requests are refused and connections closed."""

    def holds() -> bool:
        with contextlib.suppress(ApiError, ClientError, OSError):
            return condition()
        return False

    return holds


@contextlib.contextmanager
def mixed_cluster(cluster: MixedCluster) -> Iterator[MixedCluster]:
    """Starts it, and kills its nodes at the end."""
    try:
        cluster.start()
        yield cluster
    except BaseException:
        for node in cluster.nodes.values():
            print(f"--- the end of the log of node {node.plan.id} ({node.plan.kind}) ---\n{node.log()[-4000:]}")
        raise
    finally:
        cluster.stop()
