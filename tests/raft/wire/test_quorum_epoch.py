"""BeginQuorumEpoch and EndQuorumEpoch on the wire."""

import pytest

from quire.protocol import codec
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import begin_quorum_epoch as begin
from quire.protocol.messages import end_quorum_epoch as end
from quire.raft.messages import BeginEpoch, EndEpoch, EpochAnswer
from quire.raft.replicas import Endpoint, ReplicaKey
from quire.raft.wire import LeaderEndpoint, quorum_epoch

ENDPOINTS = (Endpoint("CONTROLLER", "host", 9093),)
BEGIN = BeginEpoch(5, 1, ReplicaKey(2, b"v" * 16))
END = EndEpoch(5, 1, (ReplicaKey(3, b"x" * 16), ReplicaKey(2, b"v" * 16)))


def test_an_announcement_arrives_with_the_addresses_of_the_leader() -> None:
    sent = codec.encode(quorum_epoch.begin_request(BEGIN, "cluster", ENDPOINTS), 1)
    received = codec.decode(begin.BeginQuorumEpochRequest, sent, 1)
    assert quorum_epoch.read_begin(received) == BEGIN
    assert [(each.name, each.host, each.port) for each in received.leader_endpoints] == list(ENDPOINTS)


def test_a_resignation_names_successors_by_key_or_in_version_0_by_id() -> None:
    request = quorum_epoch.end_request(END, "cluster", ENDPOINTS)
    newest = codec.decode(end.EndQuorumEpochRequest, codec.encode(request, 1), 1)
    assert quorum_epoch.read_end(newest) == END
    oldest = codec.decode(end.EndQuorumEpochRequest, codec.encode(request, 0), 0)
    assert quorum_epoch.read_end(oldest) == END._replace(successors=(ReplicaKey(3), ReplicaKey(2)))


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH])
def test_both_are_answered_with_epoch_and_leader(error: ErrorCode) -> None:
    answer = EpochAnswer(6, 3, error)
    leader = LeaderEndpoint(3, "host", 9093)
    begun = codec.encode(quorum_epoch.begin_response(answer, leader), 1)
    assert quorum_epoch.answer(codec.decode(begin.BeginQuorumEpochResponse, begun, 1), BEGIN) == answer
    ended = codec.encode(quorum_epoch.end_response(answer, leader), 1)
    assert quorum_epoch.answer(codec.decode(end.EndQuorumEpochResponse, ended, 1), END) == answer


def test_an_answer_belongs_to_the_check_of_its_announcement() -> None:
    response = quorum_epoch.begin_response(EpochAnswer(5, 1), None)
    assert quorum_epoch.answer(response, BEGIN._replace(check=7)).check == 7
    assert quorum_epoch.answer(quorum_epoch.end_response(EpochAnswer(5, 1), None), END).check == 0


def test_a_response_that_is_only_an_error_carries_no_answer() -> None:
    with pytest.raises(ApiError) as caught:
        quorum_epoch.answer(begin.BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID), BEGIN)
    assert caught.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
