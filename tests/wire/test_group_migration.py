"""A group that changes its protocol while its members run: classic and newer consumers in one group, in both
directions.
"""

import contextlib
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType
from confluent_kafka.admin import AdminClient

from quire.protocol.errors import ErrorCode
from quire.testing import WireConnection
from tests.wire.clients import WAIT_S, Confluent, Message, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.group_members import MEMBERS, member, wait_until_shared_out
from tests.wire.raw_consumer_groups import RawConsumer, describe_consumer_group
from tests.wire.raw_groups import heartbeat, join, leave, member_id_for, subscription, sync
from tests.wire.test_group_consumer_requests import told

NEWER: dict[str, Any] = {"group.protocol": "consumer"}
PARTITIONS = 6


def type_of(admin: AdminClient, group: str) -> ConsumerGroupType:
    listed = admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S).valid
    (found,) = [each for each in listed if each.group_id == group]
    return found.type


@pytest.mark.parametrize("client", list(MEMBERS))
def test_a_classic_group_takes_a_newer_consumer_in_and_is_a_classic_one_again_when_it_has_left(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName, client: str
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with member(bootstrap, group, [topic], client=client, assignor="range") as first:
        wait_until_shared_out([first], topic, PARTITIONS)
        with member(bootstrap, group, [topic], client=client, assignor="range") as second:
            wait_until_shared_out([first, second], topic, PARTITIONS)
            with member(bootstrap, group, [topic], **NEWER) as newer:
                wait_until_shared_out([first, second, newer], topic, PARTITIONS)
                assert type_of(admin, group) is ConsumerGroupType.CONSUMER
            wait_until_shared_out([first, second], topic, PARTITIONS)
            assert type_of(admin, group) is ConsumerGroupType.CLASSIC


def test_cooperative_consumers_keep_what_they_may_keep_on_the_way(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    """Not librdkafka's, because its assignor adds data to assignments that prevents a group from changing its
    protocol."""
    topic, group = make_topic(4), new_group()
    with member(bootstrap, group, [topic], client="kafka-python", assignor="cooperative-sticky") as old:
        wait_until_shared_out([old], topic, 4)
        with member(bootstrap, group, [topic], **NEWER) as newer:
            wait_until_shared_out([old, newer], topic, 4)
            given_up = [partitions for what, partitions in old.events if what != "assigned" and partitions]
            assert given_up == [newer.assigned]


def test_a_newer_group_takes_classic_consumers_in(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with member(bootstrap, group, [topic], **NEWER) as newer:
        wait_until_shared_out([newer], topic, PARTITIONS)
        with contextlib.ExitStack() as stack:
            others = [
                stack.enter_context(member(bootstrap, group, [topic], client=client, assignor="range"))
                for client in MEMBERS
            ]
            wait_until_shared_out([newer, *others], topic, PARTITIONS)
            described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
            assert (described.type, described.state) == (ConsumerGroupType.CONSUMER, ConsumerGroupState.STABLE)
            assert len(described.members) == 4
        wait_until_shared_out([newer], topic, PARTITIONS)
        assert type_of(admin, group) is ConsumerGroupType.CONSUMER


def test_members_that_restart_one_by_one_with_the_newer_protocol_lose_no_record(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName
) -> None:
    """They commit what they read, leave, and return with the other protocol, while records keep arriving."""
    topic, group = make_topic(PARTITIONS), new_group()
    sent: list[bytes] = []

    def send() -> None:
        for partition in range(PARTITIONS):
            values = [b"%d" % (len(sent) + number) for number in range(8)]
            Confluent().produce(bootstrap, topic, [Message(value) for value in values], partition=partition)
            sent.extend(values)

    got: set[bytes | None] = set()
    commits: dict[str, Any] = {"enable.auto.commit": True}
    with contextlib.ExitStack() as stack:
        old = [member(bootstrap, group, [topic], assignor="range", **commits) for _ in range(2)]
        members = [each.__enter__() for each in old]
        wait_until_shared_out(members, topic, PARTITIONS)
        send()
        for number, each in enumerate(old):
            each.__exit__(None, None, None)
            got.update(members[number].values())
            send()
            members[number] = stack.enter_context(member(bootstrap, group, [topic], **(NEWER | commits)))
            wait_until_shared_out(members, topic, PARTITIONS)
            send()
        assert type_of(admin, group) is ConsumerGroupType.CONSUMER
        eventually(lambda: got.union(*(each.values() for each in members)) == set(sent))


def test_a_classic_member_joins_a_consumer_group(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(2), new_group()
    new = RawConsumer(connection, group, topic)
    new.join()
    new.beat({topic: [0, 1]})
    with WireConnection(bootstrap) as other:
        classic = {"range": subscription(topic)}
        asked = member_id_for(other, group, protocols=classic)
        joined = join(other, group, member_id=asked, protocols=classic)
        assert (joined.error_code, joined.protocol_name, joined.members) == (ErrorCode.NONE, "range", [])
        assert joined.generation_id > new.epoch
        nothing = sync(other, group, joined)
        assert nothing.error_code == ErrorCode.NONE
        kept = told(new, {topic: [0, 1]})
        assert len(kept[topic]) == 1
        new.beat(kept)
        eventually(lambda: heartbeat(other, group, asked, joined.generation_id) == ErrorCode.REBALANCE_IN_PROGRESS)
        found = {member.member_id: member.member_type for member in describe_consumer_group(connection, group).members}
        assert found == {new.member_id: 1, asked: 0}
        left = leave(other, group, (asked, None))
        assert [member.error_code for member in left.members] == [ErrorCode.NONE]
