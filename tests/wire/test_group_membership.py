"""Consumer groups as applications see them: members join and leave, and each partition always has one owner."""

import asyncio
import contextlib
from typing import Any

import pytest

from quire.testing import Proxy
from tests.wire.clients import Confluent, Message, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.group_members import MEMBERS, member, wait_until_shared_out

ASSIGNORS = [
    ("confluent-kafka", "range"),
    ("confluent-kafka", "roundrobin"),
    ("confluent-kafka", "cooperative-sticky"),
    ("kafka-python", "range"),
    ("kafka-python", "roundrobin"),
    ("kafka-python", "sticky"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("aiokafka", "roundrobin"),
    ("aiokafka", "sticky"),
]
COOPERATIVE = [pair for pair in ASSIGNORS if pair[1] == "cooperative-sticky"]
PARTITIONS = 6


@pytest.mark.parametrize(("client", "assignor"), ASSIGNORS)
def test_members_share_partitions_as_they_come_and_go(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str, assignor: str
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with member(bootstrap, group, [topic], client=client, assignor=assignor) as first:
        wait_until_shared_out([first], topic, PARTITIONS)
        with member(bootstrap, group, [topic], client=client, assignor=assignor) as second:
            wait_until_shared_out([first, second], topic, PARTITIONS)
            with member(bootstrap, group, [topic], client=client, assignor=assignor) as third:
                wait_until_shared_out([first, second, third], topic, PARTITIONS)
            wait_until_shared_out([first, second], topic, PARTITIONS)
        wait_until_shared_out([first], topic, PARTITIONS)


@pytest.mark.parametrize("client", MEMBERS)
def test_each_record_reaches_one_member(bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(member(bootstrap, group, [topic], client=client)) for _ in range(3)]
        wait_until_shared_out(members, topic, PARTITIONS)
        for partition in range(PARTITIONS):
            values = [Message(b"%d-%d" % (partition, n)) for n in range(20)]
            Confluent().produce(bootstrap, topic, values, partition=partition)
        eventually(lambda: sum(len(each.received) for each in members) >= 20 * PARTITIONS)
        got = sorted(value for each in members for value in each.values())
        assert got == sorted(b"%d-%d" % (p, n) for p in range(PARTITIONS) for n in range(20))


@pytest.mark.parametrize(("client", "assignor"), [("confluent-kafka", "range"), ("kafka-python", "range")])
def test_an_eager_member_gives_everything_up_before_it_gets_anything(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str, assignor: str
) -> None:
    topic, group = make_topic(2), new_group()
    both = frozenset({(topic, 0), (topic, 1)})
    with member(bootstrap, group, [topic], client=client, assignor=assignor) as first:
        wait_until_shared_out([first], topic, 2)
        with member(bootstrap, group, [topic], client=client, assignor=assignor) as second:
            wait_until_shared_out([first, second], topic, 2)
            told = [event for event in first.events if event[1]]
            # kafka-python may join twice before anyone else does, when its view of the topics changes.
            assert told[0] == ("assigned", both)
            assert told[-2:] == [("revoked", both), ("assigned", first.assigned)]


@pytest.mark.parametrize(("client", "assignor"), COOPERATIVE)
def test_a_cooperative_member_gives_up_only_what_moves(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str, assignor: str
) -> None:
    topic, group = make_topic(4), new_group()
    everything = frozenset((topic, number) for number in range(4))
    with member(bootstrap, group, [topic], client=client, assignor=assignor) as first:
        wait_until_shared_out([first], topic, 4)
        with member(bootstrap, group, [topic], client=client, assignor=assignor) as second:
            wait_until_shared_out([first, second], topic, 4)
            told = [event for event in first.events if event[1]]
            assert told == [("assigned", everything), ("revoked", second.assigned)]
            assert [event for event in second.events if event[1]] == [("assigned", second.assigned)]


def test_members_of_all_clients_share_one_group(bootstrap: str, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with contextlib.ExitStack() as stack:
        members = [
            stack.enter_context(member(bootstrap, group, [topic], client=client, assignor="range"))
            for client in MEMBERS
        ]
        wait_until_shared_out(members, topic, PARTITIONS)


def test_the_assignor_that_all_members_know_is_chosen(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    """The first member prefers range, the second supports only roundrobin: with two topics their results differ."""
    topics, group = sorted([make_topic(3), make_topic(3)]), new_group()
    with (
        member(bootstrap, group, topics, assignor="range,roundrobin") as first,
        member(bootstrap, group, topics, assignor="roundrobin") as second,
    ):
        eventually(lambda: len(first.assigned) == len(second.assigned) == 3)
        by_range = {(topic, 2) for topic in topics}
        assert by_range not in (first.assigned, second.assigned)


def test_more_members_than_partitions_leave_some_with_nothing(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(1), new_group()
    with (
        member(bootstrap, group, [topic]) as first,
        member(bootstrap, group, [topic]) as second,
        member(bootstrap, group, [topic]) as third,
    ):
        eventually(lambda: all(each.events for each in (first, second, third)))
        wait_until_shared_out([first, second, third], topic, 1)


@pytest.mark.parametrize("client", MEMBERS)
def test_a_pattern_takes_in_topics_that_are_made_later(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str
) -> None:
    first, group = make_topic(2), new_group()
    age = "topic.metadata.refresh.interval.ms" if client == "confluent-kafka" else "metadata_max_age_ms"
    with member(bootstrap, group, [f"^{first}"], client=client, **{age: 500}) as one:
        wait_until_shared_out([one], first, 2)
        second = f"{first}-later"
        Confluent().produce(bootstrap, second, [Message(b"made by its first record")])
        eventually(lambda: one.assigned == {(first, 0), (first, 1), (second, 0)})
        eventually(lambda: one.values() == [b"made by its first record"])


@pytest.mark.parametrize("client", MEMBERS)
def test_the_partitions_of_a_member_that_vanishes_go_to_the_others(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    session = "session.timeout.ms" if client == "confluent-kafka" else "session_timeout_ms"
    vanishing: Any = MEMBERS[client]
    with member(bootstrap, group, [topic], client=client) as stays, Proxy(bootstrap) as proxy:
        vanishes = vanishing(proxy.address, group, [topic], **{session: 1000})
        wait_until_shared_out([stays, vanishes], topic, PARTITIONS)
        proxy.close()
        wait_until_shared_out([stays], topic, PARTITIONS)
        with contextlib.suppress(Exception, asyncio.CancelledError):  # some cannot leave the group
            vanishes.close()
