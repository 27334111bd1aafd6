"""A classic group through the interface that groups of both protocols share."""

import pytest

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.group import Group, GroupType
from quire.coordinators.runtime.record import tombstone
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.group_records import GroupMetadataKey
from tests.coordinators.group.classic.asking import beat, group_of, join, shard_at_once, stable, sync
from tests.coordinators.group.classic.classic_machine import ClassicShard
from tests.coordinators.group.classic.test_subscribed_topics import subscription


def commit_error(
    group: ClassicGroup,
    member_id: str = "",
    generation: int = -1,
    *,
    instance_id: str | None = None,
    is_transactional: bool = False,
) -> ErrorCode:
    try:
        group.check_offset_commit(member_id, instance_id, generation, is_transactional=is_transactional, api_version=9)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def rebalancing(shard: ClassicShard) -> ClassicGroup:
    """A group of two members in a rebalance; the leader has joined already."""
    leader, _ = stable(shard, 2)
    join(shard, leader)
    return group_of(shard)


def test_it_is_a_group() -> None:
    group: Group = group_of_one_that_commits()
    assert (group.group_id, group.type, group.protocol_type, group.state_name) == ("g", GroupType.CLASSIC, "", "Empty")
    assert group.is_empty
    assert group.tombstones() == [tombstone(GroupMetadataKey(group="g"))]


def group_of_one_that_commits() -> ClassicGroup:
    return shard_at_once().machine.classic.offsets_only("g")


# --- Committing


def test_a_consumer_that_assigns_its_own_partitions_commits_without_being_a_member() -> None:
    assert commit_error(group_of_one_that_commits()) is ErrorCode.NONE
    assert commit_error(group_of_one_that_commits(), "made up", 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_with_members_takes_commits_of_its_members_in_their_generation_alone() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard)
    group = group_of(shard)
    assert commit_error(group, member_id, 1) is ErrorCode.NONE
    assert commit_error(group, member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    assert commit_error(group, member_id, -1) is ErrorCode.ILLEGAL_GENERATION
    assert commit_error(group, "made up", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(group) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_of_an_old_client_names_no_member_and_may_commit() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard)
    group = group_of(shard)
    assert commit_error(group, is_transactional=True) is ErrorCode.NONE
    assert commit_error(group, member_id, 0, is_transactional=True) is ErrorCode.ILLEGAL_GENERATION


def test_offsets_are_committed_while_members_join_but_not_while_the_leader_assigns() -> None:
    shard = shard_at_once()
    group = rebalancing(shard)
    leader, follower = group.members
    assert commit_error(group, follower, 1) is ErrorCode.NONE
    join(shard, follower)
    assert commit_error(group, follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert commit_error(group, follower, 2, is_transactional=True) is ErrorCode.NONE
    assert commit_error(group, leader, 1) is ErrorCode.ILLEGAL_GENERATION


def test_a_fenced_static_member_does_not_commit() -> None:
    shard = shard_at_once()
    (old,) = stable(shard, instance_id="one", version=9)
    new = join(shard, instance_id="one", version=9).value.member_id
    assert commit_error(group_of(shard), old, 1, instance_id="one") is ErrorCode.FENCED_INSTANCE_ID
    assert commit_error(group_of(shard), new, 1, instance_id="one") is ErrorCode.NONE


def test_a_commit_shows_that_the_member_lives() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard)
    for _ in range(3):
        shard.wait(9_000)
        assert commit_error(group_of(shard), member_id, 1) is ErrorCode.NONE
    shard.wait(10_000)
    assert group_of(shard).is_empty


# --- Deleting and expiring


def test_only_an_empty_group_can_be_deleted() -> None:
    shard = shard_at_once()
    group_of_one_that_commits().check_delete()
    stable(shard)
    with pytest.raises(ApiError) as refused:
        group_of(shard).check_delete()
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP


def test_any_client_may_fetch_offsets() -> None:
    group_of_one_that_commits().check_offset_fetch(None, -1)


def test_a_topic_is_in_use_when_a_member_reads_it() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard, metadata=subscription(3, "a", "b"))
    group = group_of(shard)
    assert group.is_subscribed_to("a") and group.is_subscribed_to("b") and not group.is_subscribed_to("c")
    join(shard, member_id, metadata=subscription(3, "c"))
    sync(shard, member_id, 2)
    assert group.is_subscribed_to("c") and not group.is_subscribed_to("a")


def test_a_static_member_that_returns_for_other_topics_counts() -> None:
    shard = shard_at_once()
    stable(shard, instance_id="one", version=9, metadata=subscription(3, "a"))
    assert not group_of(shard).is_subscribed_to("b")
    join(shard, instance_id="one", version=9, metadata=subscription(3, "b"))
    assert group_of(shard).generation == 1
    assert group_of(shard).is_subscribed_to("b") and not group_of(shard).is_subscribed_to("a")


def test_if_members_do_not_say_what_they_read_every_topic_may_be_in_use() -> None:
    shard = shard_at_once()
    stable(shard, protocol_type="connect")
    assert group_of(shard).is_subscribed_to("a")
    assert group_of(shard).offsets_unused_since(5) is None
    assert not group_of_one_that_commits().is_subscribed_to("a")


def test_offsets_are_unused_from_when_the_group_became_empty_or_they_were_committed_after_that() -> None:
    shard = shard_at_once()
    stable(shard, metadata=subscription(3, "a"))
    group = group_of(shard)
    assert group.offsets_unused_since(5) == 5, "for topics that no member reads now"
    shard.wait(10_000)
    emptied_ms = shard.clock.now_ms()
    assert group.is_empty
    assert group.offsets_unused_since(5) == emptied_ms
    assert group.offsets_unused_since(emptied_ms + 5) == emptied_ms + 5
    shard.reload()
    assert group_of(shard).offsets_unused_since(5) == emptied_ms


def test_offsets_of_a_group_that_rebalances_are_in_use() -> None:
    assert rebalancing(shard_at_once()).offsets_unused_since(5) is None


def test_offsets_of_consumers_that_assign_themselves_age_from_their_commit() -> None:
    assert group_of_one_that_commits().offsets_unused_since(5) == 5


def test_heartbeats_to_an_empty_group_find_no_member() -> None:
    shard = shard_at_once()
    (member_id,) = stable(shard)
    shard.wait(10_000)
    assert isinstance(beat(shard, member_id, 1).value, ApiError)
