import pytest

from quire.client.group_member import FencedError
from quire.client.group_membership import GroupMembership, TopicIdPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

ORDERS, USERS = b"o" * 16, b"u" * 16


def member() -> GroupMembership:
    return GroupMembership("g", "me", ["orders", "users"], 60_000)


def answer(epoch: int, *assigned: TopicIdPartition) -> ConsumerGroupHeartbeatResponse:
    parts = [
        ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=[partition])
        for topic_id, partition in assigned
    ]
    return ConsumerGroupHeartbeatResponse(
        member_epoch=epoch, heartbeat_interval_ms=5000, assignment=Assignment(topic_partitions=parts)
    )


def test_it_joins_with_epoch_zero_its_own_id_and_nothing_to_read() -> None:
    request = member().heartbeat()
    assert (request.group_id, request.member_id, request.member_epoch) == ("g", "me", 0)
    assert request.subscribed_topic_names == ["orders", "users"]
    assert request.rebalance_timeout_ms == 60_000
    assert request.topic_partitions == []


def test_it_takes_what_it_is_given_and_says_so_with_the_next_heartbeat() -> None:
    me = member()
    assigned = me.answered(answer(3, (ORDERS, 0), (USERS, 1), (ORDERS, 2)))
    assert assigned == [(ORDERS, 0), (USERS, 1), (ORDERS, 2)]
    assert (me.epoch, me.interval_ms, me.owned) == (3, 5000, [])
    me.reads(assigned)
    request = me.heartbeat()
    assert request.member_epoch == 3
    assert {topic.topic_id: topic.partitions for topic in request.topic_partitions or []} == {
        ORDERS: [0, 2],
        USERS: [1],
    }


def test_subscribing_to_the_same_topics_in_any_order_is_no_change() -> None:
    me = member()
    me.answered(answer(1, (ORDERS, 0), (ORDERS, 1)))
    me.reads([(ORDERS, 1), (ORDERS, 0)])
    assert me.answered(answer(2, (ORDERS, 0), (ORDERS, 1))) is None
    assert me.epoch == 2
    assert me.answered(ConsumerGroupHeartbeatResponse(member_epoch=2)) is None


def test_nothing_left_to_read_is_a_change() -> None:
    me = member()
    me.reads([(ORDERS, 1)])
    assert me.answered(answer(2)) == []


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_fenced_member_owns_nothing_and_joins_again(code: ErrorCode) -> None:
    me = member()
    me.answered(answer(4, (ORDERS, 0)))
    me.reads([(ORDERS, 0)])
    with pytest.raises(FencedError):
        me.answered(ConsumerGroupHeartbeatResponse(error_code=code))
    assert me.heartbeat() == member().heartbeat()


def test_any_other_refusal_is_raised_in_the_brokers_words() -> None:
    refused = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED, error_message="full up")
    with pytest.raises(ApiError, match="full up") as caught:
        member().answered(refused)
    assert caught.value.code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_it_leaves_with_epoch_minus_one() -> None:
    request = member().leave_request()
    assert (request.member_id, request.member_epoch) == ("me", -1)
