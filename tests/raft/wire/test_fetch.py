"""Fetch of the metadata log on the wire."""

import pytest

from quire.protocol import codec
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.fast_fetch import encode_parts
from quire.protocol.messages import fetch as api
from quire.protocol.records import Record, build_batch
from quire.raft.control_batches import control_batch
from quire.raft.control_state import Control
from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch, FetchAnswer, FetchRequest
from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.wire import fetch

ASKED = FetchRequest(5, ReplicaKey(2, b"d" * 16), 10, 4, 8, 500)


def batch(base_offset: int, *values: bytes) -> Batch:
    records = [Record(0, 1, None, value) for value in values]
    payload = bytes(build_batch(records, base_offset=base_offset, leader_epoch=5))
    return Batch(base_offset, base_offset + len(values), 5, payload)


def received(answer: FetchAnswer) -> FetchAnswer:
    """The answer, encoded and decoded again."""
    head = bytearray()
    parts = encode_parts(fetch.response(answer, 3, None), 18, head)
    return fetch.answer(codec.decode(api.FetchResponse, b"".join(map(bytes, parts)), 18), ASKED)  # type: ignore[arg-type]


def test_a_request_arrives_unchanged() -> None:
    sent = codec.encode(fetch.request(ASKED, "cluster"), 18)
    request = codec.decode(api.FetchRequest, sent, 18)
    assert (request.cluster_id, fetch.read(request)) == ("cluster", ASKED)


def test_before_version_18_the_high_watermark_of_a_follower_is_unknown_and_no_reason_to_answer() -> None:
    request = codec.decode(api.FetchRequest, codec.encode(fetch.request(ASKED, "cluster"), 17), 17)
    assert fetch.read(request) == ASKED._replace(high_watermark=2**63 - 1)


def test_batches_arrive_byte_for_byte() -> None:
    answer = FetchAnswer(5, 1, ASKED.number, 12, batches=(batch(10, b"a", b"b"), batch(12, b"c")))
    assert received(answer) == answer


def test_a_control_batch_tells_the_voters() -> None:
    control = Control(1, VoterSet.of_ids([1, 2]))
    payload = bytes(control_batch(control, base_offset=10, epoch=5, now_ms=1))
    answer = FetchAnswer(5, 1, ASKED.number, 12, batches=(Batch(10, 12, 5, payload),))
    assert received(answer).batches == (Batch(10, 12, 5, payload, control),)


@pytest.mark.parametrize(
    "answer",
    [
        FetchAnswer(5, 1, ASKED.number, 12, diverging=LogPosition(3, 9)),
        FetchAnswer(5, 1, ASKED.number, 12, snapshot=LogPosition(4, 20)),
        FetchAnswer(6, None, ASKED.number, error=ErrorCode.FENCED_LEADER_EPOCH),
        FetchAnswer(5, 3, ASKED.number, error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_other_answers_arrive_too(answer: FetchAnswer) -> None:
    assert received(answer) == answer


def test_damaged_batches_are_refused() -> None:
    whole = batch(10, b"a")
    assert isinstance(whole.payload, bytes)
    damaged = whole.payload[:-1] + bytes([whole.payload[-1] ^ 1])
    answer = FetchAnswer(5, 1, ASKED.number, 12, batches=(whole._replace(payload=damaged),))
    with pytest.raises(ApiError) as caught:
        received(answer)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_batches_that_do_not_continue_the_log_are_refused() -> None:
    with pytest.raises(ApiError, match="a batch at 11 came instead of 10"):
        received(FetchAnswer(5, 1, ASKED.number, 12, batches=(batch(11, b"a"),)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fetch_offset": -1}, "an offset and an epoch from 0 on"),
        ({"last_fetched_epoch": -1}, "an offset and an epoch from 0 on"),
        ({"last_fetched_epoch": 6}, "does not end after its own epoch"),
        ({"partition": 1}, "only for partition 0 of the metadata log"),
    ],
)
def test_a_request_that_no_follower_sends_is_refused(changes: dict[str, int], reason: str) -> None:
    request = fetch.request(ASKED, "cluster")
    for name, value in changes.items():
        setattr(request.topics[0].partitions[0], name, value)
    with pytest.raises(ApiError, match=reason) as caught:
        fetch.read(request)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_a_request_about_another_topic_is_refused() -> None:
    request = fetch.request(ASKED, "cluster")
    request.topics[0].topic_id, request.topics[0].topic = b"o" * 16, "orders"
    with pytest.raises(ApiError, match="only for partition 0 of the metadata log") as caught:
        fetch.read(request)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
