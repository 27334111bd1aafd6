"""BeginQuorumEpoch and EndQuorumEpoch: a leader announces itself, and resigns."""

from collections.abc import Sequence

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.messages import begin_quorum_epoch as begin
from quire.protocol.messages import end_quorum_epoch as end
from quire.raft.messages import BeginEpoch, EndEpoch, EpochAnswer
from quire.raft.replicas import Endpoint, ReplicaKey
from quire.raft.wire import (
    NO_VOTER,
    LeaderEndpoint,
    check_node_id,
    check_partition,
    named_voter,
    optional_id,
    the_only,
    wire_id,
)


def begin_request(message: BeginEpoch, cluster_id: str, endpoints: Sequence[Endpoint]) -> begin.BeginQuorumEpochRequest:
    """`endpoints` are the leader's own."""
    to = message.voter or NO_VOTER
    partition = begin.BeginQuorumEpochRequestPartitionData(
        voter_directory_id=to.directory_id, leader_id=message.leader_id, leader_epoch=message.epoch
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=to.id,
        topics=[begin.BeginQuorumEpochRequestTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        leader_endpoints=[begin.LeaderEndpoint(**each._asdict()) for each in endpoints],
    )


def read_begin(request: begin.BeginQuorumEpochRequest) -> BeginEpoch:
    topic = the_only(request.topics, "topic")
    partition = the_only(topic.partitions, "partition")
    check_partition(topic.topic_name == CLUSTER_METADATA, partition.partition_index)
    check_node_id(partition.leader_id)
    voter = named_voter(request.voter_id, partition.voter_directory_id)
    return BeginEpoch(partition.leader_epoch, partition.leader_id, voter)


def begin_response(answer: EpochAnswer, leader: LeaderEndpoint | None) -> begin.BeginQuorumEpochResponse:
    partition = begin.BeginQuorumEpochResponsePartitionData(
        error_code=answer.error, leader_id=wire_id(answer.leader_id), leader_epoch=answer.epoch
    )
    return begin.BeginQuorumEpochResponse(
        topics=[begin.BeginQuorumEpochResponseTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[] if leader is None else [begin.NodeEndpoint(**leader._asdict())],
    )


def end_request(message: EndEpoch, cluster_id: str, endpoints: Sequence[Endpoint]) -> end.EndQuorumEpochRequest:
    """Version 0 names successors by their ids, later versions by their keys; the request has both."""
    partition = end.EndQuorumEpochRequestPartitionData(
        leader_id=message.leader_id,
        leader_epoch=message.epoch,
        preferred_successors=[key.id for key in message.successors],
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id) for key in message.successors
        ],
    )
    return end.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[end.EndQuorumEpochRequestTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        leader_endpoints=[end.LeaderEndpoint(**each._asdict()) for each in endpoints],
    )


def read_end(request: end.EndQuorumEpochRequest) -> EndEpoch:
    topic = the_only(request.topics, "topic")
    partition = the_only(topic.partitions, "partition")
    check_partition(topic.topic_name == CLUSTER_METADATA, partition.partition_index)
    check_node_id(partition.leader_id)
    candidates = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates]
    successors = candidates or [ReplicaKey(id_) for id_ in partition.preferred_successors]
    return EndEpoch(partition.leader_epoch, partition.leader_id, tuple(successors))


def end_response(answer: EpochAnswer, leader: LeaderEndpoint | None) -> end.EndQuorumEpochResponse:
    partition = end.EndQuorumEpochResponsePartitionData(
        error_code=answer.error, leader_id=wire_id(answer.leader_id), leader_epoch=answer.epoch
    )
    return end.EndQuorumEpochResponse(
        topics=[end.EndQuorumEpochResponseTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[] if leader is None else [end.NodeEndpoint(**leader._asdict())],
    )


def answer(
    response: begin.BeginQuorumEpochResponse | end.EndQuorumEpochResponse, asked: BeginEpoch | EndEpoch
) -> EpochAnswer:
    if response.error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(response.error_code), "the announcement was refused")
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    partition = the_only(partitions, "partition")
    check = asked.check if isinstance(asked, BeginEpoch) else 0
    leader_id = optional_id(partition.leader_id)
    return EpochAnswer(partition.leader_epoch, leader_id, ErrorCode(partition.error_code), check)
