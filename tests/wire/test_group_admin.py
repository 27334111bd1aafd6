"""Groups through the admin clients: listed, described, with offsets moved, deleted."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from kafka.errors import GroupSubscribedToTopicError, NoError, UnknownMemberIdError
from kafka.structs import OffsetAndMetadata

from quire.testing import WireConnection
from tests.wire.clients import WAIT_S, Confluent, Message, eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.group_members import member, wait_until_shared_out
from tests.wire.raw_groups import state_of
from tests.wire.raw_offsets import commit, committed

PROTOCOLS: dict[str, dict[str, Any]] = {"classic": {}, "consumer": {"group.protocol": "consumer"}}


@pytest.fixture(scope="module")
def kafka_python(bootstrap: str, coordinators: None) -> Iterator[KafkaAdminClient]:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        yield admin


def listed(admin: AdminClient, **filters: Any) -> dict[str, Any]:
    found = admin.list_consumer_groups(request_timeout=WAIT_S, **filters).result(WAIT_S)
    assert found.errors == []
    return {group.group_id: group for group in found.valid}


def describe(admin: AdminClient, group: str) -> Any:
    return admin.describe_consumer_groups([group], request_timeout=WAIT_S)[group].result(WAIT_S)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_groups_are_listed_by_state_and_type(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName, protocol: str
) -> None:
    topic, group = make_topic(), new_group()
    this = ConsumerGroupType[protocol.upper()]
    (other,) = {ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER} - {this}
    with member(bootstrap, group, [topic], **PROTOCOLS[protocol]) as one:
        wait_until_shared_out([one], topic, 1)
        eventually(lambda: listed(admin)[group].state == ConsumerGroupState.STABLE)
        assert (listed(admin)[group].type, listed(admin)[group].is_simple_consumer_group) == (this, False)
        assert group in listed(admin, states={ConsumerGroupState.STABLE})
        assert group not in listed(admin, states={ConsumerGroupState.EMPTY})
        assert group in listed(admin, types={this})
        assert group not in listed(admin, types={other})
    eventually(lambda: listed(admin)[group].state == ConsumerGroupState.EMPTY)


def test_a_group_of_commits_alone_is_a_simple_one(
    connection: WireConnection, admin: AdminClient, make_topic: MakeTopic, new_group: NewName
) -> None:
    group = new_group()
    commit(connection, group, make_topic())
    found = listed(admin)[group]
    assert (found.is_simple_consumer_group, found.state) == (True, ConsumerGroupState.EMPTY)


def test_kafka_python_and_aiokafka_list_and_describe_groups(
    bootstrap: str, kafka_python: KafkaAdminClient, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    with member(bootstrap, group, [topic], assignor="range") as one:
        wait_until_shared_out([one], topic, 1)
        found = {each["group_id"]: each for each in kafka_python.list_groups(states_filter=["Stable"])}
        assert (found[group]["protocol_type"], found[group]["group_type"]) == ("consumer", "classic")
        described = kafka_python.describe_groups([group])[group]
        assert (described["error"], described["group_state"]) == (None, "Stable")
        assert (described["protocol_type"], described["protocol_data"]) == ("consumer", "range")
        (owner,) = described["members"]
        assert owner["member_metadata"]["topics"] == [topic]
        assert [each["partitions"] for each in owner["member_assignment"]["assigned_partitions"]] == [[0]]
        assert asyncio.run(asyncio.wait_for(by_aiokafka(bootstrap, group), WAIT_S)) == ("consumer", "Stable")


async def by_aiokafka(bootstrap: str, group: str) -> tuple[str, str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        listed = dict(await admin.list_consumer_groups())
        (response,) = await admin.describe_consumer_groups([group])
        return listed[group], response.groups[0][2]
    finally:
        await admin.close()


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_is_described_with_its_members_and_what_they_own(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName, assignor: str
) -> None:
    topic, group = make_topic(2), new_group()
    named = {"client.id": "the-client", "group.instance.id": "named"}
    with member(bootstrap, group, [topic], assignor=assignor, **named) as one:
        wait_until_shared_out([one], topic, 2)
        found = describe(admin, group)
        assert (found.group_id, found.state, found.type) == (
            group,
            ConsumerGroupState.STABLE,
            ConsumerGroupType.CLASSIC,
        )
        assert (found.partition_assignor, found.is_simple_consumer_group) == (assignor, False)
        assert (found.coordinator.id, f"{found.coordinator.host}:{found.coordinator.port}") == (1, bootstrap)
        (owner,) = found.members
        assert (owner.client_id, owner.group_instance_id, owner.host) == ("the-client", "named", "/127.0.0.1")
        assert {(each.topic, each.partition) for each in owner.assignment.topic_partitions} == one.assigned


def test_a_group_that_never_was_is_described_as_dead(admin: AdminClient, new_group: NewName) -> None:
    found = describe(admin, new_group())
    assert (found.state, found.members) == (ConsumerGroupState.DEAD, [])


def test_offsets_are_listed_altered_and_read_on_from_there(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(2), new_group()
    Confluent().produce(bootstrap, topic, [Message(b"%d" % n) for n in range(5)])
    partitions = [TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 0)]
    (altered,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, partitions)]).values()
    assert [each.error for each in altered.result(WAIT_S).topic_partitions] == [None, None]
    (found,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    assert {(each.partition, each.offset) for each in found.result(WAIT_S).topic_partitions} == {(0, 3), (1, 0)}
    with member(bootstrap, group, [topic]) as one:
        eventually(lambda: one.values() == [b"3", b"4"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_offsets_of_a_group_that_is_used_cannot_be_altered(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, new_group: NewName, protocol: str
) -> None:
    topic, group = make_topic(), new_group()
    with member(bootstrap, group, [topic], **PROTOCOLS[protocol]) as one:
        wait_until_shared_out([one], topic, 1)
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])
        (altered,) = admin.alter_consumer_group_offsets([wanted]).values()
        (partition,) = altered.result(WAIT_S).topic_partitions
        assert partition.error.code() == KafkaError.UNKNOWN_MEMBER_ID


def test_kafka_python_alters_resets_and_deletes_offsets(
    bootstrap: str, kafka_python: KafkaAdminClient, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(), new_group()
    Confluent().produce(bootstrap, topic, [Message(b"%d" % n) for n in range(5)])
    partition = kafka.TopicPartition(topic, 0)
    altered = kafka_python.alter_group_offsets(group, {partition: OffsetAndMetadata(2, "by hand", -1)})
    assert altered == {partition: NoError}
    assert kafka_python.list_group_offsets(group) == {group: {partition: OffsetAndMetadata(2, "by hand", -1)}}
    kafka_python.reset_group_offsets(group, {partition: 4})
    assert kafka_python.list_group_offsets({group: [partition]})[group][partition].offset == 4
    with member(bootstrap, group, [topic]) as one:
        wait_until_shared_out([one], topic, 1)
        refused = kafka_python.delete_group_offsets(group, [partition])
        assert refused == {partition: GroupSubscribedToTopicError}
        refused = kafka_python.alter_group_offsets(group, {partition: OffsetAndMetadata(2, "", -1)})
        assert refused == {partition: UnknownMemberIdError}
    assert kafka_python.delete_group_offsets(group, [partition]) == {partition: NoError}
    assert kafka_python.list_group_offsets(group) == {group: {}}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_empty_group_can_be_deleted_with_its_offsets(
    bootstrap: str,
    connection: WireConnection,
    admin: AdminClient,
    make_topic: MakeTopic,
    new_group: NewName,
    protocol: str,
) -> None:
    topic, group = make_topic(), new_group()
    with member(bootstrap, group, [topic], **PROTOCOLS[protocol]) as one:
        wait_until_shared_out([one], topic, 1)
        one.do(lambda consumer: consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False))
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(WAIT_S)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    eventually(lambda: listed(admin)[group].state == ConsumerGroupState.EMPTY)
    admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert group not in listed(admin)
    assert committed(connection, group, topic).committed_offset == -1
    assert state_of(connection, group) == "Dead"


def test_a_group_that_never_was_cannot_be_deleted(admin: AdminClient, new_group: NewName) -> None:
    group = new_group()
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
