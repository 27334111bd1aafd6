"""Three nodes on hosts with their own addresses, whose cables are cut and slowed for real."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.controller.format import new_cluster_id
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.real.random import RealRandom
from tests.crash.namespaces import Hosts, why_not
from tests.crash.real_cluster import RealCluster, RealNode, serving, wait_while
from tests.crash.replicated_cluster import REPLICATED, TOPIC, create_replicated, in_sync, not_led_by, run_under_load
from tests.crash.replicated_load import ReplicatedLoad

IDS = (1, 2, 3)
PORT, CONTROLLER_PORT = 9092, 9093


class HostedNode(RealNode):
    """A node in the namespace of its host."""

    def __init__(self, node_id: int, folder: Path, hosts: Hosts) -> None:
        super().__init__(node_id, folder, PORT, CONTROLLER_PORT)
        self._hosts = hosts
        self.address = f"{hosts.address(node_id)}:{PORT}"
        self.controller_address = f"{hosts.address(node_id)}:{CONTROLLER_PORT}"

    def start(self) -> None:
        with self._hosts.inside(self.id):
            self.process.start()
        self.process.wait_until_ready()


class HostedCluster(RealCluster):
    def __init__(self, folder: Path, hosts: Hosts) -> None:
        random = RealRandom()
        self.cluster_id = new_cluster_id(random)
        self.nodes = {}
        for node_id in hosts.ids:
            node_folder = folder / f"node-{node_id}"
            node_folder.mkdir(parents=True)
            self.nodes[node_id] = HostedNode(node_id, node_folder, hosts)
        self.voters = VoterSet(
            [
                Voter(
                    ReplicaKey(node_id, random.uuid()),
                    (Endpoint("CONTROLLER", hosts.address(node_id), CONTROLLER_PORT),),
                )
                for node_id in hosts.ids
            ]
        )
        bootstrap = ",".join(node.controller_address for node in self.nodes.values())
        for node in self.nodes.values():
            node.write_config(bootstrap, REPLICATED)
            node.format(self.cluster_id, self.voters)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    found = Hosts(IDS)
    try:
        found.set_up()
        yield found
    finally:
        found.remove()


def test_hosts_that_are_cut_off_and_slowed_lose_nothing(hosts: Hosts, tmp_path: Path) -> None:
    """First the leader of a partition is cut off, then a cable is too slow for its traffic."""
    cluster = HostedCluster(tmp_path, hosts)
    with serving(cluster):
        servers = cluster.bootstrap_servers
        create_replicated(servers, TOPIC)

        def faults(load: ReplicatedLoad) -> None:
            lost, _ = in_sync(servers, TOPIC)[0]
            others = ",".join(node.address for node in cluster.nodes.values() if node.id != lost)
            hosts.cut(lost)
            with pytest.raises(OSError):
                socket.create_connection((hosts.address(lost), PORT), 1).close()
            wait_while(lambda: not_led_by(others, TOPIC, [each for each in IDS if each != lost]))
            load.wait_for_progress()
            hosts.join(lost)
            wait_while(lambda: "" if all(len(isr) == 3 for _, isr in in_sync(servers, TOPIC).values()) else "behind")

            slow = next(each for each in IDS if each != lost)
            hosts.slow(slow)
            load.wait_for_progress()
            load.wait_for_progress()
            assert hosts.held_up(slow) > 0
            hosts.heal(slow)

        run_under_load(cluster, faults)
