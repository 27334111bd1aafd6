"""Requests about voters, to a node that is a dynamic quorum of one."""

from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from quire.protocol.messages.update_raft_voter import KRaftVersionFeature, UpdateRaftVoterRequest
from quire.protocol.messages.update_raft_voter import Listener as UpdatedListener
from tests.node.conftest import SimulatedNode

NEW_ID, NEW_DIRECTORY = 7, b"n" * 16


def add_request(cluster_id: str | None = None, voter_id: int = NEW_ID) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1000,
        voter_id=voter_id,
        voter_directory_id=NEW_DIRECTORY,
        listeners=[Listener(name="CONTROLLER", host="new", port=9093)],
    )


def remove_request(node: SimulatedNode, directory_id: bytes | None = None) -> RemoveRaftVoterRequest:
    key = node.node.metadata.log.key
    return RemoveRaftVoterRequest(
        cluster_id=None, voter_id=key.id, voter_directory_id=key.directory_id if directory_id is None else directory_id
    )


def update_request(node: SimulatedNode, epoch: int, port: int = 1234) -> UpdateRaftVoterRequest:
    key = node.node.metadata.log.key
    return UpdateRaftVoterRequest(
        cluster_id=node.node.cluster_id,
        current_leader_epoch=epoch,
        voter_id=key.id,
        voter_directory_id=key.directory_id,
        listeners=[UpdatedListener(name="CONTROLLER", host="moved", port=port)],
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )
