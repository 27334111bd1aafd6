"""The newer group protocol (KIP-848), `group.protocol=consumer`: the broker assigns, and no member stops for the
others.

librdkafka is the client that speaks it.
"""

import contextlib
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from quire.testing import Proxy
from tests.wire.clients import WAIT_S, Confluent, Message, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.group_members import ConfluentMember, member, wait_until_shared_out

CONSUMER: dict[str, Any] = {"group.protocol": "consumer"}
PARTITIONS = 6


def describe(admin: AdminClient, group: str) -> Any:
    return admin.describe_consumer_groups([group], request_timeout=WAIT_S)[group].result(WAIT_S)


@pytest.mark.parametrize("assignor", ["uniform", "range", None])
def test_members_share_partitions_as_they_come_and_go(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, assignor: str | None
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    settings = CONSUMER if assignor is None else CONSUMER | {"group.remote.assignor": assignor}
    with member(bootstrap, group, [topic], **settings) as first:
        wait_until_shared_out([first], topic, PARTITIONS)
        with member(bootstrap, group, [topic], **settings) as second:
            wait_until_shared_out([first, second], topic, PARTITIONS)
            with member(bootstrap, group, [topic], **settings) as third:
                wait_until_shared_out([first, second, third], topic, PARTITIONS)
            wait_until_shared_out([first, second], topic, PARTITIONS)
        wait_until_shared_out([first], topic, PARTITIONS)


def test_each_record_reaches_one_member(bootstrap: str, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(member(bootstrap, group, [topic], **CONSUMER)) for _ in range(3)]
        wait_until_shared_out(members, topic, PARTITIONS)
        for partition in range(PARTITIONS):
            values = [Message(b"%d-%d" % (partition, n)) for n in range(20)]
            Confluent().produce(bootstrap, topic, values, partition=partition)
        eventually(lambda: sum(len(each.received) for each in members) >= 20 * PARTITIONS)
        got = sorted(value for each in members for value in each.values())
        assert got == sorted(b"%d-%d" % (p, n) for p in range(PARTITIONS) for n in range(20))


def test_a_member_gives_up_only_what_moves(bootstrap: str, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(4), new_group()
    everything = frozenset((topic, number) for number in range(4))
    with member(bootstrap, group, [topic], **CONSUMER) as first:
        wait_until_shared_out([first], topic, 4)
        with member(bootstrap, group, [topic], **CONSUMER) as second:
            wait_until_shared_out([first, second], topic, 4)
            assert [event for event in first.events if event[1]] == [
                ("assigned", everything),
                ("revoked", second.assigned),
            ]
            assert [event for event in second.events if event[1]] == [("assigned", second.assigned)]


def test_partitions_that_are_added_are_given_out_without_a_rebalance_of_the_others(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(2), new_group()
    with member(bootstrap, group, [topic], **CONSUMER) as one:
        wait_until_shared_out([one], topic, 2)
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(WAIT_S)
        wait_until_shared_out([one], topic, 3)
        assert [event for event in one.events if event[1]] == [
            ("assigned", frozenset({(topic, 0), (topic, 1)})),
            ("assigned", frozenset({(topic, 2)})),
        ]


def test_a_topic_created_later_is_assigned_when_it_exists(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(1), new_group()
    later = f"{topic}-later"
    settings = CONSUMER | {"allow.auto.create.topics": False}
    with member(bootstrap, group, [topic, later], **settings) as one:
        wait_until_shared_out([one], topic, 1)
        Confluent().produce(bootstrap, later, [Message(b"made by its first record")])
        eventually(lambda: one.assigned == {(topic, 0), (later, 0)})


def test_the_broker_matches_regular_expressions_against_whole_names(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(2), new_group()
    longer = f"{topic}-longer"
    Confluent().produce(bootstrap, longer, [Message(b"not asked for by the first")])
    with member(bootstrap, group, [f"^{topic}"], **CONSUMER) as narrow:
        wait_until_shared_out([narrow], topic, 2)
    with member(bootstrap, group, [f"^{topic}.*"], **CONSUMER) as wide:
        eventually(lambda: wide.assigned == {(topic, 0), (topic, 1), (longer, 0)})


def test_a_regular_expression_that_needs_backtracking_is_refused(bootstrap: str, new_group: NewName) -> None:
    """RE2 has no back references, which librdkafka accepts."""
    with (
        pytest.raises(KafkaException, match="egular expression"),
        member(bootstrap, new_group(), [r"^(a)\1"], **CONSUMER) as one,
    ):
        eventually(lambda: one.error is not None)


def test_an_unknown_assignor_is_refused(bootstrap: str, make_topic: MakeTopic, new_group: NewName) -> None:
    unknown = CONSUMER | {"group.remote.assignor": "by-magic"}
    with (
        pytest.raises(KafkaException, match="assignor or its version range is not supported"),
        member(bootstrap, new_group(), [make_topic()], **unknown) as one,
    ):
        eventually(lambda: one.error is not None)


def test_the_partitions_of_a_member_that_vanishes_go_to_the_others(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with member(bootstrap, group, [topic], **CONSUMER) as stays, Proxy(bootstrap) as proxy:
        vanishes = ConfluentMember(proxy.address, group, [topic], **CONSUMER)
        wait_until_shared_out([stays, vanishes], topic, PARTITIONS)
        proxy.close()
        wait_until_shared_out([stays], topic, PARTITIONS)
        vanishes.close()


def test_a_static_member_that_restarts_gets_its_partitions_back_without_a_rebalance(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(4), new_group()
    named = [CONSUMER | {"group.instance.id": name} for name in ("stays", "restarts")]
    with member(bootstrap, group, [topic], **named[0]) as stays:
        with member(bootstrap, group, [topic], **named[1]) as restarts:
            wait_until_shared_out([stays, restarts], topic, 4)
            owned = restarts.assigned
        before = list(stays.events)
        with member(bootstrap, group, [topic], **named[1]) as restarted:
            eventually(lambda: restarted.assigned == owned)
            assert stays.events == before


def test_a_second_static_member_of_the_same_name_is_refused_while_the_first_lives(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    """In contrast to the classic protocol, where the second member takes over."""
    topic, group = make_topic(4), new_group()
    named = CONSUMER | {"group.instance.id": "double"}
    with member(bootstrap, group, [topic], **named) as first:
        wait_until_shared_out([first], topic, 4)
        with (
            pytest.raises(KafkaException, match="instance ID is still used"),
            member(bootstrap, group, [topic], **named) as second,
        ):
            eventually(lambda: second.error is not None)
        assert len(first.assigned) == 4


def test_a_group_is_described_with_what_its_members_own(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(2), new_group()
    with (
        member(bootstrap, group, [topic], **CONSUMER) as first,
        member(bootstrap, group, [topic], **CONSUMER) as second,
    ):
        wait_until_shared_out([first, second], topic, 2)
        eventually(lambda: describe(admin, group).state == ConsumerGroupState.STABLE)
        found = describe(admin, group)
        assert (found.type, found.partition_assignor) == (ConsumerGroupType.CONSUMER, "uniform")
        owned = {
            each.member_id: {(p.topic, p.partition) for p in each.assignment.topic_partitions} for each in found.members
        }
        expected = {each.do(lambda consumer: consumer.memberid()): each.assigned for each in (first, second)}
        assert owned == expected


def test_the_successor_of_a_classic_group_continues_at_its_offsets(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(1), new_group()
    Confluent().produce(bootstrap, topic, [Message(b"%d" % n) for n in range(10)])
    with member(bootstrap, group, [topic]) as old:
        eventually(lambda: len(old.received) == 10)
        old.do(lambda consumer: consumer.commit(asynchronous=False))
    Confluent().produce(bootstrap, topic, [Message(b"new")])
    with member(bootstrap, group, [topic], **CONSUMER) as new:
        eventually(lambda: new.values() == [b"new"])
