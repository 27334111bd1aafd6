"""OffsetDelete: single offsets, of groups that do not use them."""

from quire.protocol.errors import ErrorCode
from tests.coordinators.group.offsets.offsets_shard import OffsetsShard, ok

A, B = ("a", 0), ("b", 1)


def shard_of() -> OffsetsShard:
    shard = OffsetsShard({"a": 1, "b": 2})
    shard.commit_offsets("g", {A: 5, B: 6})
    return shard


def test_deleted_offsets_stay_deleted() -> None:
    shard = shard_of()
    assert shard.delete_offsets("g", [A]) == ok(A)
    assert shard.all_offsets("g") == {B: 6}
    shard.reload()
    assert shard.all_offsets("g") == {B: 6}


def test_deleting_a_missing_offset_writes_nothing() -> None:
    shard = shard_of()
    before = len(shard.log)
    assert shard.delete_offsets("g", [("b", 0)]) == ok(("b", 0))
    assert len(shard.log) == before


def test_missing_offsets_are_reported() -> None:
    answer = shard_of().delete_offsets("g", [("x", 0), ("b", 2)])
    assert answer == dict.fromkeys([("x", 0), ("b", 2)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_consumers_lose_only_offsets_of_topics_they_do_not_read() -> None:
    shard = shard_of()
    shard.group("g").join("m", 1, "a")
    assert shard.delete_offsets("g", [A, B]) == ok(B) | {A: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    assert shard.all_offsets("g") == {A: 5}


def test_members_of_another_kind_may_use_any_offset() -> None:
    shard = shard_of()
    shard.group("g").join("m", 1)
    shard.group("g").protocol_type = "connect"
    assert shard.delete_offsets("g", [A]) == ErrorCode.NON_EMPTY_GROUP
    shard.group("g").leave(0)
    assert shard.delete_offsets("g", [A]) == ok(A)


def test_a_group_has_to_be_named_and_to_exist() -> None:
    shard = shard_of()
    assert shard.delete_offsets("nobody", [A]) == ErrorCode.GROUP_ID_NOT_FOUND
    assert shard.delete_offsets("", [A]) == ErrorCode.INVALID_GROUP_ID
