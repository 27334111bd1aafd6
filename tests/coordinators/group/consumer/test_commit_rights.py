"""Which clients may commit and read a consumer group's offsets."""

import pytest

from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.protocol.errors import ApiError, ErrorCode
from tests.coordinators.group.consumer.consumer_shard import GROUP, ConsumerShard, beat, join, topic_id

ORDERS = topic_id("orders", -1)


@pytest.fixture
def group() -> ConsumerGroup:
    """Alice is in epoch 4: she has owned partition 0 since epoch 2 and partition 1 since epoch 4; bob owned it
    before."""
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": "0"})
    shard.put_topic("orders", 2)
    shard.heartbeat(join("alice", "orders"))
    shard.heartbeat(join("bob", "orders"))
    shard.heartbeat(beat("alice", 2))
    shard.heartbeat(beat("alice", 2, {ORDERS: {0}}))
    shard.heartbeat(beat("bob", 3))
    shard.heartbeat(beat("bob", -1))
    shard.heartbeat(beat("alice", 3))
    return shard.group


def commit(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    partition: int = 0,
    *,
    is_transactional: bool = False,
    version: int = 9,
) -> ErrorCode:
    try:
        check = group.check_offset_commit(
            member_id, None, epoch, is_transactional=is_transactional, api_version=version
        )
        if check is not None:
            check(ORDERS, partition)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def test_a_member_may_commit_in_its_epoch(group: ConsumerGroup) -> None:
    assert commit(group, "alice", 4, 0) is ErrorCode.NONE
    assert commit(group, "alice", 4, 1) is ErrorCode.NONE


def test_in_an_older_epoch_only_what_it_has_had_since_then(group: ConsumerGroup) -> None:
    assert commit(group, "alice", 3, 0) is ErrorCode.NONE
    assert commit(group, "alice", 2, 0) is ErrorCode.NONE
    assert commit(group, "alice", 3, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(group, "alice", 1, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(group, "alice", 3, 7) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_commit_with_a_future_epoch_is_refused(group: ConsumerGroup) -> None:
    assert commit(group, "alice", 5) is ErrorCode.STALE_MEMBER_EPOCH


def test_strangers_commit_only_to_a_group_without_members(group: ConsumerGroup) -> None:
    assert commit(group, "bob", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(group, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(ConsumerGroup(GROUP), "", -1) is ErrorCode.NONE
    assert commit(ConsumerGroup(GROUP), "", 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_without_a_member_may_commit(group: ConsumerGroup) -> None:
    assert commit(group, "", -1, is_transactional=True) is ErrorCode.NONE
    assert commit(group, "alice", 3, 1, is_transactional=True) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_request_that_knows_no_epochs_is_too_old(group: ConsumerGroup) -> None:
    assert commit(group, "alice", 4, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit(group, "alice", 4, version=3, is_transactional=True) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("member_id", "epoch", "expected"),
    [
        (None, -1, ErrorCode.NONE),
        ("alice", 4, ErrorCode.NONE),
        ("alice", 3, ErrorCode.STALE_MEMBER_EPOCH),
        ("alice", 5, ErrorCode.STALE_MEMBER_EPOCH),
        ("bob", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 4, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_reads_offsets_in_its_epoch_and_any_client_without_one(
    group: ConsumerGroup, member_id: str | None, epoch: int, expected: ErrorCode
) -> None:
    try:
        group.check_offset_fetch(member_id, epoch)
        assert expected is ErrorCode.NONE
    except ApiError as error:
        assert error.code is expected


def test_only_a_group_without_members_may_be_deleted(group: ConsumerGroup) -> None:
    with pytest.raises(ApiError) as refusal:
        group.check_delete()
    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP
    ConsumerGroup(GROUP).check_delete()
