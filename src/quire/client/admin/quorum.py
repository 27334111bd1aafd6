"""The metadata quorum: who leads and votes, and how to add and remove a voter (KIP-853)."""

from collections.abc import Sequence
from dataclasses import dataclass

from quire.address import Address
from quire.client.admin.results import ask_controller, error
from quire.client.cluster import Cluster
from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from quire.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    ReplicaState,
)
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from quire.steps import Steps

_FAILED = "the quorum cannot be described"


@dataclass(slots=True, frozen=True)
class NamedAddress:
    """An address of a controller, with the name of its listener."""

    listener: str
    address: Address


@dataclass(slots=True, frozen=True)
class QuorumMember:
    node_id: int
    directory_id: bytes
    """Zero if it is not known."""
    log_end_offset: int
    lag: int
    last_fetch_ms: int
    last_caught_up_ms: int
    addresses: Sequence[NamedAddress]
    """Known for voters."""


@dataclass(slots=True, frozen=True)
class Quorum:
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumMember]
    observers: list[QuorumMember]


def describe_quorum(cluster: Cluster) -> Steps[Quorum]:
    """The voters and observers of the metadata log, and the end of each one's log."""
    topic = DescribeQuorumRequestTopicData(
        topic_name=CLUSTER_METADATA, partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
    )
    response = yield from ask_controller(cluster, DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse, _codes)
    failed = error(response.error_code, response.error_message, _FAILED)
    if failed is not None:
        raise failed
    answer = response.topics[0].partitions[0]
    failed = error(answer.error_code, answer.error_message, _FAILED)
    if failed is not None:
        raise failed
    end_offset = max((state.log_end_offset for state in answer.current_voters), default=0)
    addresses = {
        node.node_id: [NamedAddress(each.name, Address(each.host, each.port)) for each in node.listeners]
        for node in response.nodes
    }

    def member(state: ReplicaState) -> QuorumMember:
        return QuorumMember(
            state.replica_id,
            state.replica_directory_id,
            state.log_end_offset,
            max(0, end_offset - state.log_end_offset),
            state.last_fetch_timestamp,
            state.last_caught_up_timestamp,
            addresses.get(state.replica_id, []),
        )

    return Quorum(
        answer.leader_id,
        answer.leader_epoch,
        answer.high_watermark,
        [member(state) for state in answer.current_voters],
        [member(state) for state in answer.observers],
    )


def add_voter(
    cluster: Cluster,
    node_id: int,
    directory_id: bytes,
    addresses: Sequence[NamedAddress],
    *,
    cluster_id: str | None = None,
) -> Steps[None]:
    """Makes a controller that follows the metadata log one of its voters."""
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=int(cluster.request_timeout_ms),
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=[Listener(name=each.listener, host=each.address.host, port=each.address.port) for each in addresses],
    )
    response = yield from ask_controller(cluster, request, AddRaftVoterResponse, lambda answer: [answer.error_code])
    failed = error(response.error_code, response.error_message, f"controller {node_id} was not added")
    if failed is not None:
        raise failed


def remove_voter(cluster: Cluster, node_id: int, directory_id: bytes, *, cluster_id: str | None = None) -> Steps[None]:
    request = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory_id)
    response = yield from ask_controller(cluster, request, RemoveRaftVoterResponse, lambda answer: [answer.error_code])
    failed = error(response.error_code, response.error_message, f"controller {node_id} was not removed")
    if failed is not None:
        raise failed


def member_of(members: Sequence[QuorumMember], node_id: int, directory_id: bytes | None, kind: str) -> QuorumMember:
    """The one with this id; ApiError if there is none, or if only its directory id tells it from others."""
    found = [each for each in members if each.node_id == node_id and directory_id in (None, each.directory_id)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = " and ".join(uuids.to_text(each.directory_id) for each in found)
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"node {node_id} is {kind} with the directories {ids}: name one of them"
        )
    ids = ", ".join(str(each.node_id) for each in members) or "none"
    directory = "" if directory_id is None else f" with directory {uuids.to_text(directory_id)}"
    raise ApiError(ErrorCode.VOTER_NOT_FOUND, f"node {node_id}{directory} is not {kind} of the quorum, which has {ids}")


def _codes(response: DescribeQuorumResponse) -> list[int]:
    return [response.error_code, *(part.error_code for topic in response.topics for part in topic.partitions)]
