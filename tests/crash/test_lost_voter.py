"""A controller whose disk was emptied has lost its votes: it votes only after it was removed and added."""

from pathlib import Path

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from quire.raft.control_state import NO_VOTERS
from quire.raft.replicas import ReplicaKey
from quire.real.disk import RealDisk
from quire.storage.directory.meta_properties import read_meta
from quire.testing import WireConnection
from quire.testing.node_process import ClusterError
from tests.crash.admin_load import AdminLoad
from tests.crash.everything_is_there import assert_everything_is_there
from tests.crash.real_cluster import RealCluster, RealNode, running_cluster, wait_until

REQUESTS_PER_ROUND = 20


def test_a_voter_with_an_empty_disk_votes_only_after_it_is_removed_and_added(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        load = AdminLoad({node.id: node.address for node in cluster.nodes.values()})
        load.wait_for_more(REQUESTS_PER_ROUND)
        active = cluster.wait_for_controller()
        wiped, other = (cluster.nodes[node_id] for node_id in cluster.nodes if node_id != active)
        lost_key = key_of(wiped)
        cluster.kill(wiped.id)
        wiped.wipe()
        assert_that_it_says_what_to_do(wiped)

        wiped.format(cluster.cluster_id, NO_VOTERS)
        cluster.start(wiped.id)
        assert key_of(wiped) != lost_key
        wait_until(lambda: is_observer(cluster, wiped), "the node does not follow the metadata log")
        cluster.kill(other.id)
        wait_until(lambda: cluster.active_controller() is None, "one voter of three is not a majority")
        cluster.start(other.id)
        load.wait_for_more(REQUESTS_PER_ROUND)

        remove_voter(cluster, lost_key)
        add_voter(cluster, wiped)
        cluster.kill(other.id)
        load.wait_for_more(REQUESTS_PER_ROUND)
        cluster.start(other.id)
        assert_everything_is_there(cluster, load)


def assert_that_it_says_what_to_do(node: RealNode) -> None:
    with pytest.raises(ClusterError, match="ended with exit code 1"):
        node.start()
    said = node.process.log_tail().splitlines()[-1]
    assert f"{node.data} is not formatted" in said
    assert "--no-initial-controllers if it exists already or this disk was lost" in said


def key_of(node: RealNode) -> ReplicaKey:
    meta = read_meta(RealDisk(read_only=True), str(node.data))
    assert meta is not None
    return ReplicaKey(node.id, meta.directory_id)


def is_observer(cluster: RealCluster, node: RealNode) -> bool:
    key = key_of(node)
    described = cluster.quorum(cluster.wait_for_controller())
    if described is None:
        return False
    assert key not in [ReplicaKey(each.replica_id, each.replica_directory_id) for each in described.current_voters]
    return key in [ReplicaKey(each.replica_id, each.replica_directory_id) for each in described.observers]


def remove_voter(cluster: RealCluster, key: ReplicaKey) -> None:
    request = RemoveRaftVoterRequest(
        cluster_id=cluster.cluster_id, voter_id=key.id, voter_directory_id=key.directory_id
    )
    with WireConnection(cluster.nodes[cluster.wait_for_controller()].controller_address) as connection:
        response = connection.call(request, 0, RemoveRaftVoterResponse)
    assert response.error_code == ErrorCode.NONE, response


def add_voter(cluster: RealCluster, node: RealNode) -> None:
    key = key_of(node)
    host, _, port = node.controller_address.rpartition(":")
    request = AddRaftVoterRequest(
        cluster_id=cluster.cluster_id,
        timeout_ms=10_000,
        voter_id=key.id,
        voter_directory_id=key.directory_id,
        listeners=[Listener(name="CONTROLLER", host=host, port=int(port))],
    )
    with WireConnection(cluster.nodes[cluster.wait_for_controller()].controller_address) as connection:
        response = connection.call(request, 1, AddRaftVoterResponse)
    assert response.error_code == ErrorCode.NONE, response
