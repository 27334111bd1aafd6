"""Which of the leader's records a follower appends."""

import errno

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import patch
from quire.replication import settings
from quire.replication.follower_role import FollowerRole
from quire.replication.settings import PartitionSettings
from quire.storage import LogConfig
from tests.replication.leader import NOW, Leader, batch

EPOCH = 5


def follower(log_config: LogConfig | None = None, *, written: int = 0) -> FollowerRole:
    leader = Leader(log_config=log_config)
    for _ in range(written):
        leader.append(b"x")
    leader.partition.become_follower(2, EPOCH)
    assert leader.partition.follower is not None
    return leader.partition.follower


def sent(*offsets: int, epoch: int = EPOCH, value: bytes | None = None) -> bytearray:
    """Batches of one record each, at these offsets."""
    records = bytearray()
    for offset in offsets:
        one = batch(value or b"v%d" % offset)
        patch(one, 0, offset, epoch)
        records += one
    return records


def append(role: FollowerRole, records: bytearray) -> int:
    return role.append(memoryview(records), NOW)


def refused(role: FollowerRole, records: bytearray) -> ErrorCode:
    end = role.log.end_offset
    with pytest.raises(ApiError) as error:
        append(role, records)
    assert role.log.end_offset == end
    return error.value.code


def test_batches_are_written_as_they_are() -> None:
    role, records = follower(), sent(0, 1, 2)
    assert append(role, records) == len(records)
    assert role.fetch_position == (3, EPOCH)
    part = role.log.read(0, 1 << 20)
    assert part is not None and part.read() == bytes(records)


def test_a_part_of_a_batch_at_the_end_is_left_out() -> None:
    role, records = follower(), sent(0, 1)
    assert append(role, records[:-1]) == len(sent(0))
    assert role.log.end_offset == 1


def test_a_damaged_batch_is_never_written() -> None:
    role, records = follower(), sent(0, 1)
    records[-1] ^= 1
    assert append(role, records) == len(sent(0))
    assert role.log.end_offset == 1
    damaged = sent(1)
    damaged[-1] ^= 1
    assert refused(role, damaged) is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_that_is_larger_than_any_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "BATCH_BYTES_MAX", len(sent(0)))
    role, larger = follower(), sent(1, value=b"longer")
    assert append(role, sent(0) + larger) == len(sent(0))
    assert refused(role, larger) is ErrorCode.CORRUPT_MESSAGE
    claimed = larger[:100]
    claimed[8:12] = (2**31 - 1).to_bytes(4)
    assert refused(role, claimed) is ErrorCode.CORRUPT_MESSAGE, "what it says of itself counts"


def test_a_batch_larger_than_its_topic_now_allows_is_taken() -> None:
    """The leader accepted the batch before max.message.bytes was lowered."""
    role = follower()
    role.partition.settings = PartitionSettings(max_message_bytes=10)
    append(role, sent(0))
    assert role.log.end_offset == 1


def test_batches_that_do_not_continue_the_log_are_refused() -> None:
    role = follower(written=3)
    assert refused(role, sent(2)) is ErrorCode.CORRUPT_MESSAGE
    assert append(role, sent(3, 3)) == len(sent(3)), "the second one overlaps with the first"


def test_a_gap_is_taken_because_compaction_leaves_gaps() -> None:
    role = follower(written=1)
    append(role, sent(7))
    assert role.log.end_offset == 8


def test_an_older_epoch_than_that_of_the_log_is_refused() -> None:
    role = follower()
    append(role, sent(0, epoch=4))
    assert refused(role, sent(1, epoch=3)) is ErrorCode.CORRUPT_MESSAGE


def test_a_disk_that_was_full_takes_the_batches_of_several_epochs_when_it_has_room() -> None:
    leader = Leader()
    leader.partition.become_follower(2, EPOCH)
    role = leader.partition.follower
    assert role is not None
    records = sent(0, epoch=3) + sent(1, epoch=4) + sent(2)
    leader.disk.fail_when(lambda call: call.kind == "write", errno.ENOSPC)
    assert refused(role, records) is ErrorCode.KAFKA_STORAGE_ERROR
    assert role.fetch_position == (0, -1), "the leader must send the same again"
    assert append(role, records) == len(records)
    assert role.fetch_position == (3, EPOCH)


def test_batches_of_a_later_leader_are_left_out() -> None:
    role = follower()
    assert append(role, sent(0) + sent(1, epoch=EPOCH + 1)) == len(sent(0))
    assert append(role, sent(1, epoch=EPOCH + 1)) == 0


def test_more_than_a_segment_is_written_in_pieces() -> None:
    one = len(sent(0))
    role = follower(LogConfig(segment_bytes=2 * one))
    records = sent(*range(7))
    assert append(role, records) == len(records)
    assert [segment.size for segment in role.log.segments] == [2 * one, 2 * one, 2 * one, one]


def test_the_high_watermark_follows_the_leaders_as_far_as_the_log_reaches() -> None:
    role = follower()
    append(role, sent(0, 1))
    role.leader_committed(1)
    assert role.partition.high_watermark == 1
    role.leader_committed(9)
    assert role.partition.high_watermark == 2
    role.leader_committed(0)
    assert role.partition.high_watermark == 2, "it never goes back"


def test_an_empty_log_starts_where_the_first_batch_does() -> None:
    role = follower()
    role.log.truncate_fully_and_start_at(5)
    five_records = batch(b"3", b"4", b"5", b"6", b"7")
    patch(five_records, 0, 3, EPOCH)
    assert role.start_of(memoryview(five_records)) == 3
    role.log.truncate_fully_and_start_at(3)
    assert role.start_of(memoryview(five_records)) is None
    append(role, five_records)
    assert role.log.end_offset == 8


def test_a_log_with_records_does_not_start_elsewhere() -> None:
    role = follower(written=5)
    records = batch(b"3", b"4", b"5", b"6", b"7")
    patch(records, 0, 3, EPOCH)
    assert role.start_of(memoryview(records)) is None
    assert refused(role, records) is ErrorCode.CORRUPT_MESSAGE
