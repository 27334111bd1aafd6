"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, sent without a client."""

from typing import Any

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from quire.testing import WireConnection
from tests.wire.clients import eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw_consumer_groups import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    Owned,
    RawConsumer,
    beat,
    describe_consumer_group,
    full,
    owning,
)
from tests.wire.raw_groups import (
    described,
    heartbeat,
    leave,
    stable_alone,
    state_of,
    subscription,
)

MEMBER = "a-member"


def told(consumer: RawConsumer, owned: Owned) -> Owned:
    """Sends heartbeats until the broker returns an assignment, which may take more than one."""
    heard: list[Owned] = []

    def asked() -> bool:
        answer = consumer.beat(owned)
        if answer is not None:
            heard.append(answer)
        return bool(heard)

    eventually(asked)
    return heard[-1]


def state(connection: WireConnection, group: str) -> str:
    return describe_consumer_group(connection, group).group_state


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_owns_and_leaves(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, version: int
) -> None:
    topic, group = make_topic(2), new_group()
    joined = beat(connection, group, MEMBER, JOINS, version=version, **full(topic))
    assert (joined.error_code, joined.member_id) == (ErrorCode.NONE, MEMBER)
    assert joined.member_epoch > 0
    assert joined.heartbeat_interval_ms > 0
    assert joined.assignment is not None
    assert [sorted(each.partitions) for each in joined.assignment.topic_partitions] == [[0, 1]]
    alive = beat(connection, group, MEMBER, joined.member_epoch, version=version)
    assert (alive.error_code, alive.member_epoch, alive.assignment) == (ErrorCode.NONE, joined.member_epoch, None)
    left = beat(connection, group, MEMBER, LEAVES, version=version)
    assert (left.error_code, left.member_id, left.member_epoch) == (ErrorCode.NONE, MEMBER, -1)
    assert describe_consumer_group(connection, group).group_state == "Empty"


def test_members_make_up_their_own_ids_from_version_1_on(connection: WireConnection, new_group: NewName) -> None:
    refused = beat(connection, new_group(), "", JOINS, **full("anything"))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    given = beat(connection, new_group(), "", JOINS, version=0, **full("anything"))
    assert given.error_code == ErrorCode.NONE
    assert given.member_id


WITHOUT = {
    "a rebalance timeout": full("anything") | {"rebalance_timeout_ms": -1},
    "a subscription": full() | {"subscribed_topic_names": None},
    "saying that it owns nothing": full("anything") | {"topic_partitions": None},
    "a real instance id": full("anything", instance_id=""),
    "a real rack": full("anything", rack_id=""),
}


@pytest.mark.parametrize("missing", WITHOUT)
def test_no_member_joins_without_a_required_field(connection: WireConnection, new_group: NewName, missing: str) -> None:
    group = new_group()
    refused = beat(connection, group, MEMBER, JOINS, **WITHOUT[missing])
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message
    assert describe_consumer_group(connection, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_joining_with_owned_partitions_is_refused(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic = make_topic()
    owner = full(topic) | {"topic_partitions": owning(connection, {topic: [0]})}
    assert beat(connection, new_group(), MEMBER, JOINS, **owner).error_code == ErrorCode.INVALID_REQUEST


def test_joining_a_group_without_a_name_is_refused(connection: WireConnection, coordinators: None) -> None:
    assert beat(connection, "", MEMBER, JOINS, **full("anything")).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("assignor", ["magic", ""])
def test_an_unknown_assignor_is_refused(connection: WireConnection, new_group: NewName, assignor: str) -> None:
    refused = beat(connection, new_group(), MEMBER, JOINS, **full("anything", server_assignor=assignor))
    assert refused.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize("pattern", ["(", "a**", r"(a)\1", "(?=a)", "[z-a]"])
def test_a_pattern_that_is_not_re2_is_refused(connection: WireConnection, new_group: NewName, pattern: str) -> None:
    by_pattern = full() | {"subscribed_topic_names": None, "subscribed_topic_regex": pattern}
    refused = beat(connection, new_group(), MEMBER, JOINS, **by_pattern)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.error_message


def test_a_pattern_that_would_take_forever_to_backtrack_is_answered_at_once(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    make_topic()
    by_pattern = full() | {"subscribed_topic_names": None, "subscribed_topic_regex": r"(.*-*)*(.*.*)*!"}
    answer = beat(connection, new_group(), MEMBER, JOINS, **by_pattern)
    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("epoch", [1, 7, -1, -2])
def test_a_forged_member_is_unknown(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName, epoch: int
) -> None:
    group = new_group()
    RawConsumer(connection, group, make_topic()).join()
    instance = "nobody" if epoch == LEAVES_FOR_A_WHILE else None
    forged = beat(connection, group, "forged", epoch, instance_id=instance)
    assert forged.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    nowhere = beat(connection, new_group(), "forged", epoch, instance_id=instance)
    assert nowhere.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_another_epoch_is_fenced(connection: WireConnection, make_topic: MakeTopic, new_group: NewName) -> None:
    group = new_group()
    one = RawConsumer(connection, group, make_topic())
    one.join()
    for epoch in (one.epoch - 1 or one.epoch + 2, one.epoch + 1, 1 << 30):
        assert beat(connection, group, one.member_id, epoch).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(connection, group, one.member_id, -3).error_code == ErrorCode.INVALID_REQUEST
    assert one.beat() is None


def test_a_join_may_be_repeated(connection: WireConnection, make_topic: MakeTopic, new_group: NewName) -> None:
    topic = make_topic(2)
    one = RawConsumer(connection, new_group(), topic)
    assert one.join() == {topic: [0, 1]}
    epoch = one.epoch
    assert one.join() == {topic: [0, 1]}
    assert one.epoch == epoch


def test_a_partition_moves_only_after_its_owner_gave_it_up(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(2), new_group()
    first = RawConsumer(connection, group, topic)
    assert first.join() == {topic: [0, 1]}
    first.beat({topic: [0, 1]})
    with WireConnection(bootstrap) as other:
        second = RawConsumer(other, group, topic)
        assert second.join() == {}, "both partitions belong to the first yet"
        kept = told(first, {topic: [0, 1]})
        (number,) = kept[topic]
        assert second.beat({}) in (None, {}), "the first has not said that it gave anything up"
        assert state(connection, group) == "Reconciling"
        first.beat(kept)
        assert told(second, {}) == {topic: [1 - number]}
        second.beat({topic: [1 - number]})
        assert first.epoch == second.epoch
        eventually(lambda: state(connection, group) == "Stable")


def test_a_member_that_does_not_give_up_in_time_is_thrown_out(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(2), new_group()
    first = RawConsumer(connection, group, topic, rebalance_timeout_ms=300)
    first.join()
    first.beat({topic: [0, 1]})
    with WireConnection(bootstrap) as other:
        second = RawConsumer(other, group, topic)
        second.join()
        told(first, {topic: [0, 1]})
        eventually(lambda: second.beat({}) == {topic: [0, 1]})
    assert beat(connection, group, first.member_id, first.epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_is_described_in_full(connection: WireConnection, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(2), new_group()
    one = RawConsumer(connection, group, topic, rack_id="a-rack", server_assignor="range", instance_id="named")
    owned = one.join()
    one.beat(owned)
    found = describe_consumer_group(connection, group)
    assert (found.group_id, found.group_state, found.assignor_name) == (group, "Stable", "range")
    assert (found.group_epoch, found.assignment_epoch) == (one.epoch, one.epoch)
    (member,) = found.members
    assert (member.member_id, member.instance_id, member.rack_id) == (one.member_id, "named", "a-rack")
    assert (member.member_epoch, member.client_id, member.client_host) == (one.epoch, "wire", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.member_type) == ([topic], 1)
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.topic_name, sorted(each.partitions)) for each in assignment.topic_partitions] == [(topic, [0, 1])]


def test_groups_are_described_one_by_one_with_their_errors(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    known, classic, unknown = new_group(), new_group(), new_group()
    RawConsumer(connection, known, make_topic()).join()
    stable_alone(connection, classic)
    request = ConsumerGroupDescribeRequest(group_ids=[known, classic, unknown, ""])
    for version in (0, 1):
        answer = connection.call(request, version, ConsumerGroupDescribeResponse)
        assert {found.group_id: found.error_code for found in answer.groups} == {
            known: ErrorCode.NONE,
            classic: ErrorCode.GROUP_ID_NOT_FOUND,
            unknown: ErrorCode.GROUP_ID_NOT_FOUND,
            "": ErrorCode.INVALID_GROUP_ID,
        }


def test_a_static_member_gets_its_old_assignment_back(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(2), new_group()
    first = RawConsumer(connection, group, topic, instance_id="named")
    owned = first.join()
    first.beat(owned)
    first.leave(LEAVES_FOR_A_WHILE)
    second = RawConsumer(connection, group, topic, instance_id="named")
    assert second.join() == owned
    assert second.epoch == first.epoch
    assert len(describe_consumer_group(connection, group).members) == 1


def test_a_static_member_cannot_be_doubled_or_borrowed(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    one = RawConsumer(connection, group, topic, instance_id="named")
    one.join()
    double = beat(connection, group, "another", JOINS, **full(topic, instance_id="named"))
    assert double.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    borrowed = beat(connection, group, "another", one.epoch, instance_id="named")
    assert borrowed.error_code == ErrorCode.FENCED_INSTANCE_ID
    unnamed = beat(connection, group, one.member_id, LEAVES_FOR_A_WHILE)
    assert unnamed.error_code == ErrorCode.INVALID_REQUEST


def test_the_classic_requests_do_not_know_members_of_the_newer_protocol(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    group = new_group()
    one = RawConsumer(connection, group, make_topic())
    one.join()
    assert heartbeat(connection, group, one.member_id, one.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    found = described(connection, group)
    assert (found.error_code, found.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert described(connection, group, version=5).error_code == ErrorCode.NONE


def test_a_group_of_another_protocol_type_cannot_be_joined(connection: WireConnection, new_group: NewName) -> None:
    group = new_group()
    stable_alone(connection, group, protocol_type="connect")
    refused = beat(connection, group, MEMBER, JOINS, **full("anything"))
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert state_of(connection, group) == "Stable"


def test_an_empty_classic_group_becomes_a_consumer_group_and_back(
    connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    classic = stable_alone(connection, group)
    leave(connection, group, (classic.member_id, None))
    new = RawConsumer(connection, group, topic)
    assert new.join() == {topic: [0]}
    new.leave()
    again: dict[str, Any] = {"protocols": {"range": subscription(topic)}}
    assert stable_alone(connection, group, **again).generation_id > 0
    assert state_of(connection, group) == "Stable"


def test_many_members_join_at_once_and_all_get_something(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(30), new_group()
    with WireConnection(bootstrap) as connection:
        members = [RawConsumer(connection, group, topic) for _ in range(30)]
        owned: dict[str, Owned] = {member.member_id: member.join() or {} for member in members}

        def settled() -> bool:
            for member in members:
                owned[member.member_id] = member.beat(owned[member.member_id]) or owned[member.member_id]
            return sorted(each.get(topic, []) for each in owned.values()) == [[number] for number in range(30)]

        eventually(settled)
