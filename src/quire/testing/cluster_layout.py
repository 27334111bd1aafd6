"""What the nodes of a cluster are started with. Only `Cluster` uses this.

A single node has no proxies and chooses its port itself. Several nodes have fixed ports, are formatted as one cluster
with a dynamic quorum of up to three controllers, and advertise their proxies.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from quire.cli.node.config import EPHEMERAL
from quire.cli.node.local.plan import CONTROLLERS
from quire.cli.node.local.ports import ReservedPorts
from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.standalone import check_replication, replication_defaults
from quire.controller.format import format_node, new_cluster_id
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.real.disk import RealDisk
from quire.real.random import RealRandom
from quire.storage.directory.meta_properties import read_meta
from quire.testing.cluster_network import ClusterNetwork, NodePorts
from quire.testing.node_process import ClusterError

HOST = "127.0.0.1"
_OURS = ("node.id", "broker.id", "process.roles", "listeners", "advertised.listeners", "controller.quorum.voters")


class ClusterLayout:
    """The ports, proxies and settings of `count` nodes, whose ids begin at 1."""

    def __init__(self, count: int, config: Mapping[str, str], data_dir: Path, folder: Path) -> None:
        for key in _OURS:
            if key in config:
                raise ClusterError(f"config has {key}, which a cluster of several nodes sets itself: remove it")
        self._config = config
        self._data_dir = data_dir
        self._reserved = ReservedPorts()
        voters = range(1, (CONTROLLERS if count >= CONTROLLERS else 1) + 1)
        take = self._reserved.take
        self.ports = {id_: NodePorts(take(), take(), take() if id_ in voters else 0) for id_ in range(1, count + 1)}
        self._reserved.all_taken()
        self.network = ClusterNetwork(self.ports, folder)
        try:
            self._format([id_ for id_ in self.ports if id_ in voters])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.network.close()
        self._reserved.close()

    def node_dir(self, id_: int) -> Path:
        return self._data_dir / f"node-{id_}"

    def arguments(self, id_: int) -> list[str]:
        """Of `quire`."""
        arguments = ["start", "--ephemeral", "--control-stdin", "--data", str(self.node_dir(id_))]
        for key, value in self._settings(id_).items():
            arguments += ["--set", f"{key}={value}"]
        return arguments

    def _settings(self, id_: int) -> dict[str, str]:
        node = self.ports[id_]
        listeners = f"PLAINTEXT://{HOST}:{node.clients},NODES://{HOST}:{node.nodes}"
        advertised = f"PLAINTEXT://{HOST}:{node.clients_proxy},NODES://{HOST}:{node.nodes_proxy}"
        if node.controller:
            listeners += f",CONTROLLER://{HOST}:{node.controller}"
            advertised += f",CONTROLLER://{HOST}:{node.controller_proxy}"
        servers = (each.controller_proxy for each in self.ports.values() if each.controller)
        return {
            **replication_defaults(len(self.ports)),
            **self._config,
            "node.id": str(id_),
            "process.roles": "broker,controller" if node.controller else "broker",
            "listeners": listeners,
            "advertised.listeners": advertised,
            "inter.broker.listener.name": "NODES",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,NODES:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"{HOST}:{port}" for port in servers),
        }

    def _format(self, voter_ids: list[int]) -> None:
        random, disk = RealRandom(), RealDisk()
        voters = VoterSet(
            Voter(ReplicaKey(id_, random.uuid()), (Endpoint("CONTROLLER", HOST, self.ports[id_].controller_proxy),))
            for id_ in voter_ids
        )
        cluster_id = new_cluster_id(random)
        for id_ in self.ports:
            if read_meta(disk, str(self.node_dir(id_))) is not None:
                raise ClusterError(
                    f"{self.node_dir(id_)} has data of an earlier cluster, whose controllers had other addresses; "
                    "give a cluster of several nodes an empty data_dir"
                )
            try:
                config = BrokerConfig.load(
                    assignments=[f"{key}={value}" for key, value in self._settings(id_).items()],
                    data_dir=str(self.node_dir(id_)),
                    extra=EPHEMERAL,
                )
                check_replication(config.get_int, len(self.ports))
            except ConfigError as error:
                raise ClusterError(str(error)) from error
            now_ms = time.time_ns() // 1_000_000
            format_node(disk, random, config, now_ms=now_ms, cluster_id=cluster_id, initial_voters=voters)
