"""Three nodes of Apache Kafka, each broker and controller, any of which can be killed and started again."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from interop.apache_kafka import ApacheKafka, settings
from tests.free_ports import free_ports

NODES = 3
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    # So that a broker's end is noticed within seconds.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


class KafkaCluster:
    def __init__(self, kafka: ApacheKafka, folder: Path) -> None:
        self._kafka = kafka
        self._folders = {node: folder / f"node-{node}" for node in range(1, NODES + 1)}
        ports = free_ports(2 * NODES)
        voters = ",".join(f"{node}@127.0.0.1:{ports[NODES + node - 1]}" for node in self._folders)
        self._properties: dict[int, dict[str, str]] = {}
        for node, own in self._folders.items():
            own.mkdir()
            chosen = settings(own / "data", node_id=node)
            del chosen["controller.quorum.bootstrap.servers"]
            addresses = f"PLAINTEXT://127.0.0.1:{ports[node - 1]},CONTROLLER://127.0.0.1:{ports[NODES + node - 1]}"
            self._properties[node] = (
                chosen
                | REPLICATED
                | {
                    "listeners": addresses,
                    "controller.quorum.voters": voters,
                }
            )
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.bootstrap_servers = ",".join(f"127.0.0.1:{port}" for port in ports[:NODES])

    def start(self) -> None:
        """Starts all nodes that do not run; returns when each of them serves."""
        for node, own in self._folders.items():
            if not (own / "data").exists():
                self._kafka.format(self._properties[node], own, CLUSTER_ID, alone=False)
        started = [node for node in self._folders if node not in self._running]
        for node in started:
            self._running[node] = self._kafka.start(self._properties[node], self._folders[node])
        for node in started:
            self._kafka.wait_until_it_serves(self._running[node], self._properties[node], self._folders[node])

    def kill(self, node: int) -> None:
        process = self._running.pop(node)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for node in list(self._running):
            self.kill(node)


@contextlib.contextmanager
def kafka_cluster(kafka: ApacheKafka, folder: Path) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(kafka, folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
