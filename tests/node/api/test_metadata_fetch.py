"""Fetch on controller listeners: other nodes copy the metadata log."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchRequest, FetchResponse
from quire.raft import messages
from quire.raft.messages import FetchAnswer
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import fetch
from tests.node.conftest import SimulatedNode

START = messages.FetchRequest(1, ReplicaKey(7, b"d" * 16), 0, 0, -1, 0)


def request(node: SimulatedNode, message: messages.FetchRequest, cluster_id: str | None = None) -> FetchRequest:
    node.info.listener = "CONTROLLER"
    return fetch.request(message, cluster_id or node.node.cluster_id)


def fetched(node: SimulatedNode, message: messages.FetchRequest, version: int = 18) -> FetchAnswer:
    return fetch.answer(node.call(request(node, message), version, FetchResponse), message)


@pytest.mark.parametrize("version", range(15, 19))
def test_an_observer_gets_the_log_from_its_start(node: SimulatedNode, version: int) -> None:
    answer = fetched(node, START, version)
    log = node.node.metadata.log
    assert (answer.epoch, answer.leader_id) == (1, 1)
    assert (answer.batches[0].base_offset, answer.batches[-1].next_offset) == (0, log.next_offset)
    assert [each.key.id for each in log.view().observers] == [7]


def test_a_fetch_at_the_end_waits_and_is_answered_empty(node: SimulatedNode) -> None:
    log = node.node.metadata.log
    message = START._replace(offset=log.next_offset, last_epoch=1, high_watermark=log.high_watermark, max_wait_ms=100)
    started_ms = node.clock.monotonic_ms()
    assert fetched(node, message).batches == ()
    assert node.clock.monotonic_ms() >= started_ms + 100


def test_a_waiting_fetch_is_answered_by_the_next_record(node: SimulatedNode) -> None:
    log = node.node.metadata.log
    end = log.next_offset
    message = START._replace(offset=end, last_epoch=1, high_watermark=log.high_watermark, max_wait_ms=60_000)
    waiting = node.send(request(node, message), 18)
    assert not waiting.done
    node.info.listener = "PLAINTEXT"
    node.create_topic("orders")
    node.clock.run_until(lambda: waiting.done)
    assert waiting.value is not None and len(waiting.value) > 100


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_a_fetch_in_another_epoch_gets_the_leader(node: SimulatedNode, epoch: int, error: ErrorCode) -> None:
    answer = fetched(node, START._replace(epoch=epoch))
    assert (answer.error, answer.epoch, answer.leader_id, answer.batches) == (error, 1, 1, ())


def test_a_node_of_another_cluster_is_refused(node: SimulatedNode) -> None:
    answer = node.call(request(node, START, "other"), 18, FetchResponse)
    assert (answer.error_code, answer.responses) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])


def test_no_other_topic_is_read_on_this_listener(node: SimulatedNode) -> None:
    asked = request(node, START)
    asked.topics[0].topic_id = b"t" * 16
    asked.topics[0].topic = ""
    assert node.call(asked, 18, FetchResponse).error_code == ErrorCode.INVALID_REQUEST
