"""FetchSnapshot on the wire."""

import pytest

from quire.protocol import codec
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import fetch_snapshot as api
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import fetch_snapshot
from quire.raft.wire.fetch_snapshot import SnapshotPart, SnapshotPartRequest

ASKED = SnapshotPartRequest(5, ReplicaKey(2, b"d" * 16), LogPosition(4, 20), 100, 64)


def test_a_request_arrives_unchanged() -> None:
    sent = codec.encode(fetch_snapshot.request(ASKED, "cluster"), 1)
    assert fetch_snapshot.read(codec.decode(api.FetchSnapshotRequest, sent, 1)) == ASKED


@pytest.mark.parametrize(
    "part", [SnapshotPart(5, 1, 164, b"x" * 64), SnapshotPart(6, None, error=ErrorCode.FENCED_LEADER_EPOCH)]
)
def test_a_part_arrives_unchanged(part: SnapshotPart) -> None:
    sent = codec.encode(fetch_snapshot.response(part, ASKED, None), 1)
    assert fetch_snapshot.answer(codec.decode(api.FetchSnapshotResponse, sent, 1), ASKED) == part


def test_a_part_from_another_position_is_refused() -> None:
    response = fetch_snapshot.response(SnapshotPart(5, 1, 164, b"x"), ASKED._replace(offset=0), None)
    with pytest.raises(ApiError, match="asked for 100, got 0"):
        fetch_snapshot.answer(response, ASKED)


@pytest.mark.parametrize(("offset", "max_bytes"), [(-1, 10), (0, 0)])
def test_a_part_before_the_file_or_without_bytes_is_refused(offset: int, max_bytes: int) -> None:
    with pytest.raises(ApiError) as caught:
        fetch_snapshot.read(fetch_snapshot.request(ASKED._replace(offset=offset, max_bytes=max_bytes), "cluster"))
    assert caught.value.code is ErrorCode.POSITION_OUT_OF_RANGE


def test_a_request_gets_no_more_than_a_part_may_have() -> None:
    request = fetch_snapshot.request(ASKED._replace(max_bytes=1 << 30), "cluster")
    assert fetch_snapshot.read(request).max_bytes == fetch_snapshot.PART_BYTES_MAX


def test_a_snapshot_of_another_topic_is_refused() -> None:
    request = fetch_snapshot.request(ASKED, "cluster")
    request.topics[0].name = "orders"
    with pytest.raises(ApiError) as caught:
        fetch_snapshot.read(request)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
