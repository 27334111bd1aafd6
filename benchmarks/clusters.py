"""Three nodes of each side, broker and controller in one process each, with default settings."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import JVM, QUIRE, answers
from benchmarks.processes import cpu, has_ended, resident_bytes
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import WireConnection
from tests.free_ports import free_cluster_port, free_ports

NODES = (1, 2, 3)
WAIT_S = 120
LOOK_EVERY_S = 0.005


class ThreeNodes(Protocol):
    name: str
    ports: dict[int, int]
    """Where clients connect, by node id."""

    def start(self) -> float:
        """Starts all nodes; returns the seconds until each of them answered and knew all brokers."""
        ...

    def pid(self, node: int) -> int: ...

    def data(self, node: int) -> Path:
        """Its log directory."""
        ...

    def kill(self, node: int) -> None:
        """Kills a node with SIGKILL."""
        ...

    def hold_stopped(self, node: int) -> None:
        """Stops a node cleanly; it does not start before `start_again`."""
        ...

    def start_again(self, node: int) -> None:
        """Starts a node that was killed or stopped, unless a supervisor does."""
        ...

    def stop(self) -> None: ...


def bootstrap(cluster: ThreeNodes, without: int | None = None) -> str:
    return ",".join(f"127.0.0.1:{port}" for node, port in cluster.ports.items() if node != without)


def brokers_seen_by(port: int) -> set[int]:
    """The live brokers according to one node; none if it does not answer."""
    try:
        with WireConnection(f"127.0.0.1:{port}", timeout_s=2) as connection:
            answer = connection.call(MetadataRequest(topics=[]), 12, MetadataResponse)
            return {broker.node_id for broker in answer.brokers}
    except (OSError, AssertionError):
        return set()


def controller_of(cluster: ThreeNodes, without: int | None = None) -> int:
    """The active controller, according to any node that knows."""
    topic = DescribeQuorumRequestTopicData(
        topic_name=CLUSTER_METADATA, partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
    )
    request = DescribeQuorumRequest(topics=[topic])
    for node, port in cluster.ports.items():
        if node != without:
            with WireConnection(f"127.0.0.1:{port}") as connection:
                answer = connection.call(request, 2, DescribeQuorumResponse)
                return answer.topics[0].partitions[0].leader_id
    raise AssertionError("no node to ask")


def wait_until_all_serve(cluster: ThreeNodes) -> None:
    deadline = time.monotonic() + WAIT_S
    for port in cluster.ports.values():
        while not (answers(port) and brokers_seen_by(port) == set(NODES)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{cluster.name} did not serve within {WAIT_S} s")
            time.sleep(LOOK_EVERY_S)


def until(condition: Callable[[], bool], look_every_s: float = LOOK_EVERY_S, limit_s: float = WAIT_S) -> float:
    """The seconds until the condition holds."""
    started = time.perf_counter()
    while not condition():
        if time.perf_counter() - started > limit_s:
            raise TimeoutError(f"not within {limit_s:g} s")
        time.sleep(look_every_s)
    return time.perf_counter() - started


def isrs(admin: AdminClient, topic: str) -> list[list[int]]:
    return [each.isrs for each in admin.list_topics(topic, timeout=10).topics[topic].partitions.values()]


def create_topic(cluster: ThreeNodes, name: str, partitions: int = 1) -> None:
    """With three replicas, two of which must be in sync; returns when all are."""
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
    topic = NewTopic(name, partitions, len(NODES), config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[name].result(30)
    until(lambda: [len(isr) for isr in isrs(admin, name)] == [len(NODES)] * partitions, look_every_s=0.05)


def leader_of(cluster: ThreeNodes, topic: str) -> int:
    """The leader of the first partition. The node that is asked may learn of a new topic later than the others."""
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
    leader = -1

    def has_leader() -> bool:
        nonlocal leader
        found = admin.list_topics(topic, timeout=10).topics[topic].partitions.get(0)
        leader = -1 if found is None else found.leader
        return leader >= 0

    until(has_leader)
    return leader


def resident_mb(cluster: ThreeNodes) -> float:
    return sum(resident_bytes(cluster.pid(node)) for node in NODES) / 1e6


def cpu_s(cluster: ThreeNodes) -> float:
    return sum(cpu(cluster.pid(node)).total_s for node in NODES)


class QuireNodes:
    """`quire start --nodes 3`, whose supervisor starts a killed node again."""

    name = "Quire"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        first = free_cluster_port(len(NODES))
        self.ports = {node: first + 10 * (node - 1) for node in NODES}
        self._supervisor: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        first = self.ports[1]
        command = [str(QUIRE), "start", "--nodes", "3", "--data", str(self._folder / "data")]
        started = time.perf_counter()
        with (self._folder / "log.txt").open("ab") as log:
            self._supervisor = subprocess.Popen([*command, "--listen", f"127.0.0.1:{first}"], stdout=log, stderr=log)
        wait_until_all_serve(self)
        return time.perf_counter() - started

    def pid(self, node: int) -> int:
        """The last process of the node, according to the supervisor's log."""
        found = re.findall(rf"node-{node} started pid=(\d+)", (self._folder / "log.txt").read_text())
        return int(found[-1])

    def data(self, node: int) -> Path:
        return self._folder / "data" / f"node-{node}"

    def kill(self, node: int) -> None:
        os.kill(self.pid(node), signal.SIGKILL)

    def hold_stopped(self, node: int) -> None:
        """The supervisor sleeps until `start_again`, or it would start the node at once."""
        assert self._supervisor is not None
        self._supervisor.send_signal(signal.SIGSTOP)
        pid = self.pid(node)
        os.kill(pid, signal.SIGTERM)
        until(lambda: has_ended(pid))

    def start_again(self, node: int) -> None:
        """Does nothing: the supervisor starts it."""
        assert self._supervisor is not None
        self._supervisor.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._supervisor is not None:
            self._supervisor.send_signal(signal.SIGCONT)
            self._supervisor.terminate()
            self._supervisor.wait(60)
            self._supervisor = None


class ApacheKafkaNodes:
    name = "Apache Kafka"

    def __init__(self, folder: Path, jars: Path, *, replicas: int = 1) -> None:
        """`replicas` is the replication factor of the internal topics."""
        self._folder = folder
        self._replicas = replicas
        self._jars = f"{jars}/*"
        ports = free_ports(6)
        self.ports = dict(zip(NODES, ports[:3], strict=True))
        voters = ",".join(f"{node}@127.0.0.1:{ports[2 + node]}" for node in NODES)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for node in NODES:
            self._write_properties(node, ports[2 + node], voters)

    def _properties(self, node: int) -> Path:
        return self._folder / f"node-{node}.properties"

    def _write_properties(self, node: int, controller_port: int, voters: str) -> None:
        self._properties(node).write_text(
            f"""process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{self.ports[node]},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
log.dirs={self._folder}/node-{node}
offsets.topic.replication.factor={self._replicas}
transaction.state.log.replication.factor={self._replicas}
transaction.state.log.min.isr={min(self._replicas, 2)}
"""
        )
        tool = ["java", "-cp", self._jars, "kafka.tools.StorageTool"]
        arguments = ["format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(self._properties(node))]
        subprocess.run([*tool, *arguments], check=True, capture_output=True, timeout=60)

    def start(self) -> float:
        started = time.perf_counter()
        for node in NODES:
            self.start_again(node)
        wait_until_all_serve(self)
        return time.perf_counter() - started

    def pid(self, node: int) -> int:
        return self._processes[node].pid

    def data(self, node: int) -> Path:
        return self._folder / f"node-{node}"

    def kill(self, node: int) -> None:
        process = self._processes.pop(node)
        process.kill()
        process.wait()

    def hold_stopped(self, node: int) -> None:
        process = self._processes.pop(node)
        process.terminate()
        process.wait(60)

    def start_again(self, node: int) -> None:
        with (self._folder / f"node-{node}.txt").open("ab") as log:
            command = ["java", *JVM, "-cp", self._jars, "kafka.Kafka", str(self._properties(node))]
            self._processes[node] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(60)
        self._processes.clear()
