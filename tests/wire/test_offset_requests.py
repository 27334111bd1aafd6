"""ListOffsets and OffsetForLeaderEpoch in every version, with every special timestamp."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from quire.testing import WireConnection
from tests.wire.batches import NOW_MS, batch, record
from tests.wire.conftest import MakeTopic
from tests.wire.raw import list_offset, produce

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


@pytest.fixture
def filled(connection: WireConnection, make_topic: MakeTopic) -> str:
    """Offsets 0 to 5, two in a batch, the largest timestamp at offset 3."""
    topic = make_topic()
    for first, second in ((0, 10), (20, 50), (30, 40)):
        records = record(b"a", 0, timestamp_delta=first) + record(b"b", 1, timestamp_delta=second)
        answer = produce(connection, topic, batch([b"a", b"b"], records=records, max_timestamp=NOW_MS + second))
        assert answer.error_code == ErrorCode.NONE
    return topic


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_finds_the_ends_and_a_time(connection: WireConnection, filled: str, version: int) -> None:
    epoch = 0 if version >= 4 else -1
    for timestamp, offset, found_ms in (
        (LATEST, 6, -1),
        (EARLIEST, 0, -1),
        (NOW_MS + 15, 2, NOW_MS + 20),
        (NOW_MS + 50, 3, NOW_MS + 50),
    ):
        found = list_offset(connection, filled, timestamp, version=version)
        assert (found.error_code, found.offset, found.timestamp) == (ErrorCode.NONE, offset, found_ms)
        assert found.leader_epoch == epoch


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (MAX_TIMESTAMP, (3, NOW_MS + 50)),
        (EARLIEST_LOCAL, (0, -1)),
        (LATEST_TIERED, (-1, -1)),
        (NOW_MS + 51, (-1, -1)),
    ],
)
def test_special_times(connection: WireConnection, filled: str, timestamp: int, expected: tuple[int, int]) -> None:
    found = list_offset(connection, filled, timestamp)
    assert (found.offset, found.timestamp) == expected
    assert found.error_code == ErrorCode.NONE


def test_leader_epochs_are_checked(connection: WireConnection, filled: str) -> None:
    assert list_offset(connection, filled, LATEST, epoch=0).error_code == ErrorCode.NONE
    assert list_offset(connection, filled, LATEST, epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_unknown_partitions_and_topics(connection: WireConnection, filled: str) -> None:
    assert list_offset(connection, filled, LATEST, partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(connection, f"{filled}-x", LATEST).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def end_of_epoch(
    connection: WireConnection, topic: str, epoch: int, *, current: int = -1, version: int = 4, partition: int = 0
) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    return connection.call(request, version, OffsetForLeaderEpochResponse).topics[0].partitions[0]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_current_epoch_ends_where_the_log_ends(connection: WireConnection, filled: str, version: int) -> None:
    found = end_of_epoch(connection, filled, 0, version=version)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (ErrorCode.NONE, 0, 6)


@pytest.mark.parametrize("epoch", [1, 5, -1])
def test_an_epoch_that_never_was_has_no_end(connection: WireConnection, filled: str, epoch: int) -> None:
    found = end_of_epoch(connection, filled, epoch)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (ErrorCode.NONE, -1, -1)


def test_the_askers_epoch_is_checked(connection: WireConnection, filled: str) -> None:
    assert end_of_epoch(connection, filled, 0, current=0).error_code == ErrorCode.NONE
    assert end_of_epoch(connection, filled, 0, current=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    unknown = end_of_epoch(connection, filled, 0, partition=9)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
