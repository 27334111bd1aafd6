"""Which of several commits counts: plain, transactional and deleted ones; and after a restart."""

from quire.coordinators.group.offsets.store import OffsetStore
from quire.coordinators.runtime.record import Origin
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.group_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.coordinators.group.offsets.offsets_shard import OffsetsShard

A = ("a", 0)
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def shard_of() -> OffsetsShard:
    return OffsetsShard({"a": 1, "b": 1})


def stable(shard: OffsetsShard) -> int:
    """The offset, or minus the error code, for a client that requires a stable offset."""
    answer = shard.partition("g", *A, require_stable=True)
    return answer.committed_offset if not answer.error_code else -answer.error_code


def test_a_commit_in_a_transaction_counts_when_that_is_committed() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 1})
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    assert shard.offset("g", *A) == 1
    shard.end_transaction(8, 0, committed=True)
    assert shard.offset("g", *A) == 5
    shard.reload()
    assert shard.offset("g", *A) == 5


def test_a_commit_in_a_transaction_that_is_aborted_never_was() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 1})
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    shard.end_transaction(8, 0, committed=False)
    assert shard.offset("g", *A) == 1
    shard.reload()
    assert shard.offset("g", *A) == 1


def test_a_fetch_of_stable_offsets_must_wait_for_the_transaction() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    assert stable(shard) == -UNSTABLE and shard.offset("g", *A) == -1
    shard.reload()
    assert stable(shard) == -UNSTABLE
    shard.end_transaction(8, 0, committed=True)
    assert stable(shard) == 5


def test_an_offset_is_unstable_until_the_last_of_its_transactions_has_ended() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    shard.commit_in_transaction("g", {A: 6}, producer_id=9)
    shard.end_transaction(8, 0, committed=False)
    assert stable(shard) == -UNSTABLE
    shard.end_transaction(9, 0, committed=True)
    assert stable(shard) == 6


def test_the_last_commit_of_a_transaction_counts() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    shard.commit_in_transaction("g", {A: 6}, producer_id=8)
    shard.end_transaction(8, 0, committed=True)
    assert shard.offset("g", *A) == 6


def test_a_plain_commit_during_a_transaction_is_newer_than_the_transactions() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    shard.commit_offsets("g", {A: 3})
    shard.end_transaction(8, 0, committed=True)
    assert shard.offset("g", *A) == 3


def test_of_two_transactions_the_one_that_wrote_later_counts_whichever_ended_first() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    shard.commit_in_transaction("g", {A: 6}, producer_id=9)
    shard.end_transaction(9, 0, committed=True)
    shard.end_transaction(8, 0, committed=True)
    assert shard.offset("g", *A) == 6


def test_the_next_transaction_of_a_producer_has_nothing_of_the_last() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    shard.end_transaction(8, 0, committed=False)
    shard.commit_in_transaction("g", {("b", 0): 7}, producer_id=8, producer_epoch=1)
    shard.end_transaction(8, 1, committed=True)
    assert shard.all_offsets("g") == {("b", 0): 7}


def test_a_transaction_may_commit_for_several_groups() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 5}, producer_id=8)
    shard.commit_in_transaction("h", {A: 6}, producer_id=8)
    shard.end_transaction(8, 0, committed=True)
    assert (shard.offset("g", *A), shard.offset("h", *A)) == (5, 6)


def test_the_end_of_a_transaction_that_committed_no_offsets_changes_nothing() -> None:
    shard = shard_of()
    shard.commit_offsets("g", {A: 1})
    shard.end_transaction(8, 0, committed=True)
    assert shard.all_offsets("g") == {A: 1}


def test_deleting_an_offset_ends_what_open_transactions_wanted_it_to_be() -> None:
    shard = shard_of()
    shard.commit_in_transaction("g", {A: 5, ("b", 0): 5}, producer_id=8)
    shard.delete_offsets("g", [A])
    assert stable(shard) == -1
    shard.end_transaction(8, 0, committed=True)
    assert shard.all_offsets("g") == {("b", 0): 5}


def test_a_tombstone_of_an_unknown_offset_changes_nothing() -> None:
    store = OffsetStore()
    store.replay(OffsetCommitKey(group="g", topic="a", partition=0), None, Origin(0))
    assert list(store.group_ids()) == []


def test_records_of_old_versions_are_understood() -> None:
    store = OffsetStore()
    store.replay(
        LegacyOffsetCommitKey(group="g", topic="a", partition=0),
        LegacyOffsetCommitValue(offset=3, metadata="m", commit_timestamp=9),
        Origin(7),
    )
    store.replay(
        OffsetCommitKey(group="g", topic="a", partition=1),
        OffsetCommitValue(offset=4, metadata="", commit_timestamp=9, expire_timestamp=99),
        Origin(8),
    )
    first, second = store.committed.get("g", "a", 0), store.committed.get("g", "a", 1)
    assert first is not None and second is not None
    assert (first.offset, first.leader_epoch, first.metadata, first.expire_timestamp_ms) == (3, -1, "m", -1)
    assert (second.offset, second.leader_epoch, second.expire_timestamp_ms, second.log_offset) == (4, -1, 99, 8)


def test_deleted_offsets_leave_nothing_in_memory() -> None:
    store = OffsetStore()
    key = OffsetCommitKey(group="g", topic="a", partition=0)
    value = OffsetCommitValue(offset=4, metadata="", commit_timestamp=9)
    store.replay(key, value, Origin(0))
    store.replay(key, value, Origin(1, 8, 0))
    assert list(store.group_ids()) == ["g"] and store.has_pending("g")
    store.replay(key, None, Origin(2))
    assert list(store.group_ids()) == [] and not store.has_pending("g")
    assert not store.is_known("g", "a", 0)
