"""Fetch: what is read, and where each error is reported. Other tests of fetch are in files of similar names."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.produce import ProduceResponse
from quire.replication.members import Members
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request


def fetch_of(
    topic: str, *, current_leader_epoch: int = -1, replica_id: int = -1, session_id: int = 0, session_epoch: int = -1
) -> FetchRequest:
    wanted = FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=current_leader_epoch
    )
    return FetchRequest(
        replica_id=replica_id,
        session_id=session_id,
        session_epoch=session_epoch,
        max_bytes=1000,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )


def test_a_partition_fetched_twice_in_one_request_is_read_once(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)] * 3
    request = FetchRequest(session_epoch=-1, max_bytes=1000, topics=[FetchTopic(topic="t", partitions=wanted)] * 2)
    (topic,) = node.call(request, 12, FetchResponse).responses
    assert len(topic.partitions) == 1


def test_a_response_that_is_full_is_sent_although_it_has_less_than_the_minimum(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    request = fetch_of("t")
    request.max_bytes, request.min_bytes, request.max_wait_ms = 1, 1000, 500
    answer = node.send(request, 12)
    node.clock.run_for(100)
    assert answer.done


@pytest.mark.parametrize("version", [4, 14, 15, 18])
def test_a_consumer_for_debugging_reads_what_every_consumer_reads(node: SimulatedNode, version: int) -> None:
    """Replica id -2 is not a follower."""
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    request = fetch_of("t", replica_id=-2 if version < 15 else -1)
    request.topics[0].topic_id = node.node.image.topics_by_name["t"].topic_id
    request.replica_state.replica_id = -1 if version < 15 else -2
    (topic,) = node.call(request, version, FetchResponse).responses
    (part,) = topic.partitions
    assert (part.error_code, part.high_watermark) == (ErrorCode.NONE, 1)
    assert part.records


def test_a_topic_that_may_not_be_read_is_refused(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    deny(node, (AclOperation.READ, "t"))
    (topic,) = node.call(fetch_of("t"), 12, FetchResponse).responses
    (part,) = topic.partitions
    assert part.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not part.records


@pytest.mark.parametrize(
    ("session_id", "session_epoch", "code"),
    [(7, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND), (0, 5, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)],
)
def test_an_error_of_the_session_is_one_of_the_whole_request(
    node: SimulatedNode, session_id: int, session_epoch: int, code: ErrorCode
) -> None:
    node.create_topic("t")
    answer = node.call(fetch_of("t", session_id=session_id, session_epoch=session_epoch), 12, FetchResponse)
    assert (answer.error_code, answer.responses) == (code, [])


def test_a_session_whose_epoch_was_skipped_is_one_of_the_whole_request(node: SimulatedNode) -> None:
    node.create_topic("t")
    opened = node.call(fetch_of("t", session_epoch=0), 12, FetchResponse)
    assert opened.session_id > 0
    skipped = node.call(fetch_of("t", session_id=opened.session_id, session_epoch=2), 12, FetchResponse)
    assert (skipped.error_code, skipped.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])


@pytest.mark.parametrize(("version", "expected"), [(11, (-1, -1)), (12, (1, 0))])
def test_an_old_leader_epoch_is_answered_with_the_current_leader_from_version_12_on(
    node: SimulatedNode, version: int, expected: tuple[int, int]
) -> None:
    node.create_topic("t")
    leader = node.node.partitions.leader("t", None, 0)
    leader.partition.become_leader(leader.leader_epoch + 1, Members((1,), (1,)))
    (topic,) = node.call(fetch_of("t", current_leader_epoch=0), version, FetchResponse).responses
    (part,) = topic.partitions
    assert part.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == expected
