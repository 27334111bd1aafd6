"""Vote on the wire: what the machine sends arrives unchanged, in every version that can carry it."""

import pytest

from quire.protocol import codec
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import vote as api
from quire.raft.log_summary import LogPosition
from quire.raft.messages import VoteAnswer, VoteRequest
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import LeaderEndpoint, vote

MESSAGE = VoteRequest(5, ReplicaKey(2, b"c" * 16), LogPosition(4, 70), False, ReplicaKey(1, b"v" * 16))
PRE_VOTE = MESSAGE._replace(pre_vote=True)


@pytest.mark.parametrize("message", [MESSAGE, PRE_VOTE])
def test_a_request_arrives_unchanged(message: VoteRequest) -> None:
    sent = codec.encode(vote.request(message, "cluster"), 2)
    received = codec.decode(api.VoteRequest, sent, 2)
    assert received.cluster_id == "cluster"
    assert vote.read(received) == message


def test_before_directory_ids_a_request_names_no_voter() -> None:
    received = codec.decode(api.VoteRequest, codec.encode(vote.request(MESSAGE, "cluster"), 0), 0)
    assert vote.read(received) == MESSAGE._replace(candidate=ReplicaKey(2), voter=None)


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY])
@pytest.mark.parametrize("leader_id", [None, 3])
def test_an_answer_arrives_with_the_kind_of_vote_that_was_asked_for(leader_id: int | None, error: ErrorCode) -> None:
    answer = VoteAnswer(6, leader_id, leader_id is None, True, error)
    response = codec.encode(vote.response(answer, LeaderEndpoint(3, "host", 9093)), 2)
    received = codec.decode(api.VoteResponse, response, 2)
    assert vote.answer(received, PRE_VOTE) == answer
    assert [(each.node_id, each.host, each.port) for each in received.node_endpoints] == [(3, "host", 9093)]


def test_a_response_that_is_only_an_error_carries_no_answer() -> None:
    with pytest.raises(ApiError) as caught:
        vote.answer(api.VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID), MESSAGE)
    assert caught.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_request_about_another_log_is_refused() -> None:
    request = vote.request(MESSAGE, "cluster")
    request.topics[0].topic_name = "orders"
    with pytest.raises(ApiError) as caught:
        vote.read(request)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(ApiError, match="one topic, not 0"):
        vote.read(api.VoteRequest())


@pytest.mark.parametrize(("epoch", "last_epoch", "pre_vote"), [(5, 5, False), (5, 6, True), (5, -1, False)])
def test_a_candidate_whose_log_ends_after_its_epoch_is_refused(epoch: int, last_epoch: int, pre_vote: bool) -> None:
    message = VoteRequest(epoch, ReplicaKey(2), LogPosition(last_epoch, 7), pre_vote)
    with pytest.raises(ApiError) as caught:
        vote.read(vote.request(message, "cluster"))
    assert caught.value.code is ErrorCode.INVALID_REQUEST
