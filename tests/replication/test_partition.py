"""A partition: its roles, the high watermark, and what readers may see."""

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import build_batch
from quire.protocol.records.batch import patch, walk_batches
from quire.replication.commit_wait import CommitWait
from quire.replication.fetch_wait import FetchWait
from quire.replication.members import Members
from quire.replication.partition import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from quire.storage.producers.end_marker import build_end_marker
from tests.replication.leader import NOW, Leader, batch, records


def test_nothing_past_the_high_watermark_is_read() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(b"a")
    assert leader.partition.high_watermark == 0
    assert leader.read(0) == []
    assert not leader.role.may_acknowledge(0, acks_all=True)
    assert leader.role.may_acknowledge(0, acks_all=False)
    leader.partition.become_leader(0, Members((1,), (1,)))
    assert leader.partition.high_watermark == 1
    assert leader.read(0) == [b"a"]


def test_an_offset_outside_the_log_is_out_of_range() -> None:
    leader = Leader()
    leader.append(b"a")
    for offset in (-1, 2):
        with pytest.raises(ApiError) as refused:
            leader.read(offset)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_records_are_deleted_from_the_start_and_never_past_the_high_watermark() -> None:
    leader = Leader()
    leader.append(b"a", b"b", b"c")
    assert leader.partition.deletion_target(2) == 2
    leader.partition.log.delete_records_before(2)
    assert leader.partition.deletion_target(1) == 2
    with pytest.raises(ApiError) as refused:
        leader.partition.deletion_target(4)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert leader.partition.deletion_target(-1) == 3


def test_offsets_are_found_by_special_timestamp_and_by_time() -> None:
    leader = Leader()
    for number in range(5):
        leader.role.append(build_batch(records(b"x", timestamp=NOW + number * 10)), True, NOW)
    partition = leader.partition
    assert partition.find_offset(-1, False) == (-1, 5, 0)
    assert partition.find_offset(-2, False) == (-1, 0, 0)
    assert partition.find_offset(-3, False) == (NOW + 40, 4, 0)
    assert partition.find_offset(NOW + 11, False) == (NOW + 20, 2, 0)
    assert partition.find_offset(NOW + 41, False) is None


def test_epochs_tell_where_logs_diverge() -> None:
    leader = Leader()
    leader.append(b"a", b"b")
    leader.partition.become_leader(3, Members((1,), (1,)))
    leader.append(b"c")
    partition = leader.partition
    assert partition.epoch_end(0) == (0, 2)
    assert partition.epoch_end(3) == (3, 3)
    assert partition.diverging_epoch(0, 1) is None
    assert partition.diverging_epoch(0, 3) == (0, 2)
    assert partition.diverging_epoch(2, 2) == (0, 2)
    with pytest.raises(ApiError) as refused:
        partition.check_leader_epoch(2)
    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH


def test_a_partition_has_one_role_or_none() -> None:
    partition = Leader().partition
    assert partition.leader is not None and partition.follower is None
    partition.become_follower(2, 1)
    assert partition.leader is None and partition.follower is not None
    partition.become_leader(2, Members((1, 2), (1, 2)))
    assert partition.leader is not None and partition.follower is None
    partition.leave_role()
    assert partition.leader is None and partition.follower is None
    partition.become_follower(3, 3)
    partition.leave_role()
    assert partition.leader is None and partition.follower is None


def test_requests_that_wait_in_a_removed_partition_are_answered() -> None:
    leader = Leader(isr=(1, 2))
    answered: list[str] = []
    FetchWait([leader.role], 1).ended.when_done(lambda _: answered.append("fetch"))
    wait = CommitWait()
    role = leader.role
    wait.when_done(lambda failed: answered.append(f"produce, {failed[role].name}"))
    wait.wait_for(role, 1, acks_all=True)
    leader.partition.leave_role()
    assert answered == ["fetch", "produce, NOT_LEADER_OR_FOLLOWER"]


def test_a_request_that_is_answered_at_the_end_of_a_leadership_finds_the_next_role() -> None:
    leader = Leader()
    found: list[int | None] = []

    def look(_: None) -> None:
        found.append(None if leader.partition.leader is None else leader.partition.leader.leader_epoch)

    FetchWait([leader.role], 1).ended.when_done(look)
    leader.partition.become_leader(1, Members((1,), (1,)))
    FetchWait([leader.role], 1).ended.when_done(look)
    leader.partition.become_follower(2, 2)
    assert found == [1, None]


def test_a_transaction_with_an_uncommitted_marker_is_open_to_readers_also_under_the_next_leadership() -> None:
    leader = Leader(isr=(1, 2))
    partition = leader.partition
    leader.role.append_own(batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True), NOW)
    leader.role.end_transaction(7, 1, committed=True, coordinator_epoch=0, bumps_epoch=True, now_ms=NOW)
    partition.become_follower(2, 1)
    partition.become_leader(2, Members((1, 2), (1, 2)))
    assert (partition.high_watermark, partition.last_stable_offset) == (0, 0)
    assert partition.log.uncommitted_markers.entries
    partition.become_leader(2, Members((1,), (1,)))
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 2)
    assert not partition.log.uncommitted_markers.entries


def test_a_new_leader_does_not_show_what_the_uncommitted_marker_of_the_previous_one_ended() -> None:
    leader = Leader(isr=(1, 2))
    partition = leader.partition
    partition.become_follower(2, 1)
    copied = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    copied += build_end_marker(7, 0, committed=True, coordinator_epoch=0, timestamp=NOW)
    headers = walk_batches(copied)
    patch(copied, headers[1].position, 1, 0)
    partition.log.append_as_follower(copied, walk_batches(copied), NOW)
    partition.move_high_watermark(1)
    assert partition.last_stable_offset == 0, "the follower has the record committed, but not its marker"
    partition.become_leader(2, Members((1, 2), (1, 2)))
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)
    partition.become_leader(2, Members((1,), (1,)))
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 2)


def test_a_new_leader_does_not_say_where_the_log_ends_before_its_followers_have_fetched() -> None:
    leader = Leader(isr=(1, 2))
    partition = leader.partition
    leader.append(b"a", b"b")
    leader.role.followers.fetched(2, 50, 1, 0)
    assert partition.find_offset(LATEST_TIMESTAMP, False) == (-1, 1, 0)
    partition.become_leader(1, Members((1, 2), (1, 2), 1))
    for timestamp in (LATEST_TIMESTAMP, NOW + 1):
        with pytest.raises(ApiError) as refused:
            partition.find_offset(timestamp, False)
        assert refused.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert partition.find_offset(EARLIEST_TIMESTAMP, False) == (-1, 0, 0)
    assert partition.find_offset(NOW, False) == (NOW, 0, 0), "that record is committed"
    leader.role.followers.fetched(2, 50, 2, 0)
    assert partition.find_offset(LATEST_TIMESTAMP, False) == (-1, 2, 1)
