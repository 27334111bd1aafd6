"""Vote: a candidate asks a voter for its vote, or for a pre-vote (KIP-996)."""

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.messages import vote as api
from quire.raft.log_summary import LogPosition
from quire.raft.messages import VoteAnswer, VoteRequest
from quire.raft.replicas import ReplicaKey
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


def request(message: VoteRequest, cluster_id: str) -> api.VoteRequest:
    to = message.voter or NO_VOTER
    partition = api.VoteRequestPartitionData(
        replica_epoch=message.epoch,
        replica_id=message.candidate.id,
        replica_directory_id=message.candidate.directory_id,
        voter_directory_id=to.directory_id,
        last_offset_epoch=message.last.epoch,
        last_offset=message.last.offset,
        pre_vote=message.pre_vote,
    )
    return api.VoteRequest(
        cluster_id=cluster_id,
        voter_id=to.id,
        topics=[api.VoteRequestTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
    )


def read(request: api.VoteRequest) -> VoteRequest:
    topic = the_only(request.topics, "topic")
    partition = the_only(topic.partitions, "partition")
    check_partition(topic.topic_name == CLUSTER_METADATA, partition.partition_index)
    check_node_id(partition.replica_id)
    # A candidate opens a new epoch, in which it has written nothing yet; a pre-vote is asked for in the last one.
    newest_epoch = partition.replica_epoch - (0 if partition.pre_vote else 1)
    if partition.last_offset < 0 or not 0 <= partition.last_offset_epoch <= newest_epoch:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a candidate's log does not end after its own epoch")
    return VoteRequest(
        partition.replica_epoch,
        ReplicaKey(partition.replica_id, partition.replica_directory_id),
        LogPosition(partition.last_offset_epoch, partition.last_offset),
        partition.pre_vote,
        named_voter(request.voter_id, partition.voter_directory_id),
    )


def response(answer: VoteAnswer, leader: LeaderEndpoint | None) -> api.VoteResponse:
    partition = api.VoteResponsePartitionData(
        error_code=answer.error,
        leader_id=wire_id(answer.leader_id),
        leader_epoch=answer.epoch,
        vote_granted=answer.granted,
    )
    return api.VoteResponse(
        topics=[api.VoteResponseTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[] if leader is None else [api.NodeEndpoint(**leader._asdict())],
    )


def answer(response: api.VoteResponse, asked: VoteRequest) -> VoteAnswer:
    if response.error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(response.error_code), "the vote was refused")
    partition = the_only(the_only(response.topics, "topic").partitions, "partition")
    return VoteAnswer(
        partition.leader_epoch,
        optional_id(partition.leader_id),
        partition.vote_granted,
        asked.pre_vote,
        ErrorCode(partition.error_code),
    )
