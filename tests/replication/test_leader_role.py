"""A partition's leader: appends, what commits them, and what ends with the leadership."""

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Compression, build_batch, iterate_records
from quire.replication.members import Members
from quire.replication.settings import PartitionSettings
from quire.replication.verification_guards import VerificationGuard
from tests.replication.leader import NOW, Leader, batch, records

PRODUCER = 7


def test_a_leader_alone_commits_an_append_at_once() -> None:
    leader = Leader()
    assert leader.append(b"a", b"b") == 0
    assert leader.append(b"c") == 2
    assert leader.partition.high_watermark == 3
    assert leader.read(0) == [b"a", b"b", b"c"]
    assert leader.read(2) == [b"c"]
    assert leader.read(3) == []


def test_acks_all_needs_enough_in_sync_replicas_and_acks_1_does_not() -> None:
    leader = Leader(PartitionSettings(min_insync_replicas=2))
    leader.partition.become_leader(0, Members((1, 2), (1,)))
    with pytest.raises(ApiError) as refused:
        leader.append(b"a")
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader.append(b"a", acks_all=False) == 0


def test_no_more_in_sync_replicas_are_needed_than_there_are_replicas() -> None:
    leader = Leader(PartitionSettings(min_insync_replicas=2))
    leader.append(b"a")
    assert leader.partition.high_watermark == 1


def test_a_retried_batch_of_an_idempotent_producer_gets_its_first_offset_again() -> None:
    leader = Leader()

    def send(sequence: int) -> int:
        return leader.append(b"x", producer_id=7, producer_epoch=0, base_sequence=sequence)

    for sequence in range(6):
        send(sequence)
    for sequence in range(1, 6):
        assert send(sequence) == sequence
    assert leader.partition.high_watermark == 6
    with pytest.raises(ApiError) as refused:
        send(8)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_log_append_time_replaces_the_producers_timestamps() -> None:
    leader = Leader(PartitionSettings(log_append_time=True, timestamp_after_max_ms=2**62))
    appended = leader.role.append(build_batch(records(b"a", timestamp=5)), True, NOW)
    assert appended.max_timestamp == NOW
    data = leader.partition.read(0, 1000, at_least_one_batch=True, committed_only=False)
    assert data is not None
    assert [record.timestamp for record in iterate_records(data.read())] == [NOW]


@pytest.mark.parametrize("compression", list(Compression))
def test_a_topics_compression_replaces_the_producers(compression: Compression) -> None:
    leader = Leader(PartitionSettings(compression=compression))
    leader.append(b"a" * 500, b"b" * 500)
    assert leader.read(0) == [b"a" * 500, b"b" * 500]
    data = leader.partition.read(0, 1 << 20, at_least_one_batch=True, committed_only=False)
    assert data is not None
    assert data.read()[22] & 7 == compression


def test_a_full_disk_is_a_storage_error_and_the_next_append_succeeds() -> None:
    leader = Leader()
    leader.append(b"a")
    leader.disk.fail_when(lambda operation: operation.kind == "write", 28)
    with pytest.raises(ApiError) as refused:
        leader.append(b"b")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(leader.failures) == 1
    assert leader.append(b"c") == 1
    assert leader.read(0) == [b"a", b"c"]


def test_the_size_limit_applies_to_a_batch_as_it_is_stored() -> None:
    leader = Leader(PartitionSettings(compression=Compression.NONE, max_message_bytes=1000))
    small = build_batch(records(b"x" * 5000), compression=Compression.ZSTD)
    assert len(small) < 1000
    with pytest.raises(ApiError) as refused:
        leader.role.append(small, True, NOW)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert leader.partition.high_watermark == 0


def acquire(leader: Leader, producer_epoch: int = 0) -> VerificationGuard:
    return leader.role.guards.acquire(PRODUCER, producer_epoch, bumps_epoch=True)


def append_in_transaction(leader: Leader, guard: VerificationGuard | None) -> None:
    first = batch(b"a", producer_id=PRODUCER, producer_epoch=0, base_sequence=0, transactional=True)
    leader.role.append(first, True, NOW, guard, in_transaction=True)


def refused_append(leader: Leader, guard: VerificationGuard | None) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        append_in_transaction(leader, guard)
    return refused.value.code


def test_a_transaction_begins_with_a_valid_guard_only() -> None:
    leader = Leader()
    revoked = acquire(leader)
    leader.role.end_transaction(PRODUCER, 0, committed=False, coordinator_epoch=0, bumps_epoch=False, now_ms=NOW)
    assert refused_append(leader, None) is ErrorCode.INVALID_TXN_STATE
    assert refused_append(leader, revoked) is ErrorCode.INVALID_TXN_STATE
    assert leader.partition.last_stable_offset == 1
    append_in_transaction(leader, acquire(leader))
    assert (leader.partition.high_watermark, leader.partition.last_stable_offset) == (2, 1)


def test_a_guard_does_not_outlive_the_leadership_it_was_acquired_in() -> None:
    """The markers of another leader did not revoke it, so the coordinator has to confirm the transaction again."""
    leader = Leader()
    guard = acquire(leader)
    leader.partition.leave_role()
    assert not guard.is_valid
    leader.partition.become_leader(1, Members((1,), (1,)))
    assert refused_append(leader, guard) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.log.end_offset == 0
    append_in_transaction(leader, acquire(leader))
    assert leader.log.end_offset == 1


def test_a_change_of_the_isr_leaves_the_leadership_and_its_guards_as_they_are() -> None:
    leader = Leader(isr=(1, 2))
    role, guard = leader.role, acquire(leader)
    told = leader.wait_for(1)
    leader.partition.become_leader(0, Members((1, 3), (1, 3)))
    assert leader.role is role and role.followers.in_sync.committed == (1, 3)
    assert guard.is_valid
    assert told == []


def test_a_new_epoch_is_a_new_leadership_even_without_another_leader_in_between() -> None:
    leader = Leader(isr=(1, 2))
    role = leader.role
    leader.append(b"a")
    told = leader.wait_for(1)
    leader.partition.become_leader(2, Members((1, 2), (1, 2)))
    assert leader.role is not role and leader.role.leader_epoch == 2
    assert told == [{role: ErrorCode.NOT_LEADER_OR_FOLLOWER}]
    assert not role.commit_waits
    assert not leader.role.commit_waits


def test_a_deposed_leader_does_not_move_the_high_watermark() -> None:
    leader = Leader(isr=(1, 2))
    role = leader.role
    leader.append(b"a")
    leader.partition.become_follower(2, 1)
    role.flushed()
    assert leader.partition.high_watermark == 0
