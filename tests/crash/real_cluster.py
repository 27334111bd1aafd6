"""Three nodes as processes of their own, each of which a test kills, pauses and starts again.

Every node is broker and controller; the quorum is dynamic. The nodes take snapshots of the metadata log often, so that
a restart finds one. Nodes are started at the same time, because none is ready before there is a quorum.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from quire.cli.node.config import load_config
from quire.controller.format import format_node, new_cluster_id
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.real.disk import RealDisk
from quire.real.random import RealRandom
from quire.testing import WireConnection
from quire.testing.node_process import NodeProcess
from tests.free_ports import free_ports

HOST = "127.0.0.1"
START_S = 90.0
WAIT_S = 90.0
ASK_S = 3.0
POLL_S = 0.02
SETTINGS = {
    # A broker that was killed may register again only after its session.
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 400,
    "metadata.log.max.record.bytes.between.snapshots": 20_000,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


class RealNode:
    """Where a node listens, its folder, and its process."""

    def __init__(self, node_id: int, folder: Path, port: int, controller_port: int) -> None:
        self.id = node_id
        self.folder = folder
        self.data = folder / "data"
        self.config = folder / "server.properties"
        self.address = f"{HOST}:{port}"
        self.controller_address = f"{HOST}:{controller_port}"
        self.process = NodeProcess(["start", "--config", str(self.config)], folder, START_S)

    def start(self) -> None:
        """Returns when it serves; ClusterError if it ends instead."""
        self.process.start()
        self.process.wait_until_ready()

    @property
    def answers(self) -> bool:
        return self.process.pid is not None and not self.process.paused

    @property
    def metadata_log(self) -> Path:
        return self.data / "__cluster_metadata-0"

    def write_config(self, bootstrap: str, settings: Mapping[str, object]) -> None:
        lines = {
            "node.id": self.id,
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{self.controller_address}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": bootstrap,
            "log.dirs": self.data,
            **settings,
        }
        self.config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))

    def format(self, cluster_id: str, voters: VoterSet) -> None:
        """Without voters the node joins a cluster that exists."""
        now_ms = int(time.time() * 1000)
        config = load_config(str(self.config))
        format_node(RealDisk(), RealRandom(), config, now_ms=now_ms, cluster_id=cluster_id, initial_voters=voters)

    def wipe(self) -> None:
        """Empties its disk."""
        shutil.rmtree(self.data)


class RealCluster:
    def __init__(self, folder: Path, count: int = 3, settings: Mapping[str, object] | None = None) -> None:
        random = RealRandom()
        self.cluster_id = new_cluster_id(random)
        ports = free_ports(2 * count)
        self.nodes: dict[int, RealNode] = {}
        for node_id in range(1, count + 1):
            node_folder = folder / f"node-{node_id}"
            node_folder.mkdir(parents=True)
            self.nodes[node_id] = RealNode(node_id, node_folder, ports.pop(), ports.pop())
        bootstrap = ",".join(node.controller_address for node in self.nodes.values())
        self.voters = VoterSet([_voter(node, random.uuid()) for node in self.nodes.values()])
        for node in self.nodes.values():
            node.write_config(bootstrap, SETTINGS | dict(settings or {}))
            node.format(self.cluster_id, self.voters)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    # --- Processes

    def start(self, *ids: int) -> None:
        """Starts these nodes, or all, and returns when each of them serves clients."""
        nodes = [self.nodes[each] for each in ids or self.nodes]
        with ThreadPoolExecutor(len(nodes)) as pool:
            for started in [pool.submit(node.start) for node in nodes]:
                started.result()

    def kill(self, *ids: int) -> None:
        """Kills these nodes, or all, with SIGKILL."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            for killed in [pool.submit(self.nodes[each].process.kill) for each in ids or self.nodes]:
                killed.result()

    def logs(self) -> str:
        return "\n".join(f"--- node {node.id}\n{node.process.log()}" for node in self.nodes.values())

    # --- Questions to the nodes

    def quorum(self, node_id: int) -> DescribeQuorumResponsePartitionData | None:
        """The node's description of the quorum if it leads it; None if it does not lead it, or cannot be reached."""
        node = self.nodes[node_id]
        if not node.answers:
            return None
        partition = DescribeQuorumRequestPartitionData(partition_index=0)
        topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
        try:
            with WireConnection(node.controller_address, timeout_s=ASK_S) as connection:
                response = connection.call(DescribeQuorumRequest(topics=[topic]), 2, DescribeQuorumResponse)
        except OSError:
            return None
        if response.error_code != ErrorCode.NONE:
            return None
        (found,) = response.topics[0].partitions
        return found if found.error_code == ErrorCode.NONE and found.leader_id == node_id else None

    def active_controller(self) -> int | None:
        """The running node that leads the metadata quorum."""
        return next((node_id for node_id in self.nodes if self.quorum(node_id) is not None), None)

    def wait_for_controller(self, *, other_than: int | None = None) -> int:
        """The active controller, as soon as there is one, and it is not `other_than`."""
        found: list[int] = []

        def is_there() -> bool:
            active = self.active_controller()
            if active is None or active == other_than:
                return False
            found.append(active)
            return True

        wait_until(is_there, "no controller is active")
        return found[-1]

    def metadata(self, node_id: int) -> MetadataResponse:
        with WireConnection(self.nodes[node_id].address, timeout_s=ASK_S) as connection:
            return connection.call(MetadataRequest(topics=None), 12, MetadataResponse)

    def unfenced(self, node_id: int) -> set[int]:
        """The brokers that a node knows as unfenced."""
        try:
            return {broker.node_id for broker in self.metadata(node_id).brokers}
        except OSError:
            return set()

    def wait_until_unfenced(self, *ids: int) -> None:
        """Waits until every node that answers knows exactly these brokers, or all, as unfenced."""
        wanted = set(ids or self.nodes)
        nodes = [node.id for node in self.nodes.values() if node.answers]

        def wrong() -> str:
            known = {each: self.unfenced(each) for each in nodes}
            return "" if all(found == wanted for found in known.values()) else f"unfenced, by node, are {known}"

        wait_while(wrong)


def _voter(node: RealNode, directory_id: bytes) -> Voter:
    host, _, port = node.controller_address.rpartition(":")
    return Voter(ReplicaKey(node.id, directory_id), (Endpoint("CONTROLLER", host, int(port)),))


@contextmanager
def running_cluster(
    folder: Path,
    settings: Mapping[str, object] | None = None,
    environments: Mapping[int, dict[str, str]] | None = None,
) -> Iterator[RealCluster]:
    """Three nodes that serve, with variables for the processes of some."""
    cluster = RealCluster(folder, settings=settings)
    for node_id, environment in (environments or {}).items():
        cluster.nodes[node_id].process.environment = environment
    with serving(cluster):
        yield cluster


@contextmanager
def serving(cluster: RealCluster) -> Iterator[None]:
    """Starts the nodes, and kills them at the end. Fails if a node logs a traceback; a failure prints all logs."""
    try:
        cluster.start()
        cluster.wait_until_unfenced()
        yield
        assert "Traceback" not in cluster.logs()
    except BaseException:
        print(cluster.logs())
        raise
    finally:
        cluster.kill()


def wait_until(condition: Callable[[], bool], otherwise: str) -> None:
    assert otherwise
    wait_while(lambda: "" if condition() else otherwise)


def wait_while(what_is_wrong: Callable[[], str]) -> None:
    """Waits until `problem` returns an empty text; after the time limit the test fails with the last text."""
    deadline = time.monotonic() + WAIT_S
    while wrong := what_is_wrong():
        assert time.monotonic() < deadline, f"{wrong} after {WAIT_S:g} s"
        time.sleep(POLL_S)
