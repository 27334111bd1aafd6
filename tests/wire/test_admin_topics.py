"""Topics are created, described, extended and deleted through admin clients; and the errors."""

import asyncio
from typing import Any

import kafka.errors
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic

from tests.wire.clients import OTHER_BROKER, WAIT_S, at_once
from tests.wire.conftest import MakeTopic


def create(admin: AdminClient, name: str, partitions: int = 1, factor: int = 1, **more: Any) -> None:
    options = {key: more.pop(key) for key in ("validate_only",) if key in more}
    new = NewTopic(name, num_partitions=partitions, replication_factor=factor, **more)
    admin.create_topics([new], **options)[name].result(WAIT_S)


def describe(admin: AdminClient, name: str) -> Any:
    return admin.describe_topics(TopicCollection([name]))[name].result(WAIT_S)


def code_of(caught: pytest.ExceptionInfo[KafkaException]) -> int:
    error: KafkaError = caught.value.args[0]
    return int(error.code())


def test_a_new_topic_is_described_with_its_id_and_partitions(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=4)
    described = describe(admin, topic)
    assert described.name == topic
    assert len(str(described.topic_id)) == 22
    assert not described.is_internal
    assert [partition.id for partition in described.partitions] == [0, 1, 2, 3]
    for partition in described.partitions:
        assert partition.leader.id == partition.replicas[0].id == partition.isr[0].id


def test_topics_are_listed_with_their_partitions(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    listed = admin.list_topics(timeout=WAIT_S)
    assert sorted(listed.topics[topic].partitions) == [0, 1]


def test_validate_only_creates_nothing(admin: AdminClient, make_topic: MakeTopic) -> None:
    name = make_topic() + "-not-made"
    create(admin, name, validate_only=True)
    assert name not in admin.list_topics(timeout=WAIT_S).topics


def test_replicas_may_be_assigned(admin: AdminClient, make_topic: MakeTopic) -> None:
    name = make_topic() + "-assigned"
    node_id = next(iter(admin.list_topics(timeout=WAIT_S).brokers))
    new = NewTopic(name, num_partitions=2, replica_assignment=[[node_id], [node_id]])
    admin.create_topics([new])[name].result(WAIT_S)
    at_once(lambda: [[r.id for r in p.replicas] for p in describe(admin, name).partitions] == [[node_id], [node_id]])


@pytest.mark.parametrize(
    "name", [".", "..", "with space", "slash/ed", "ünïcode", "x" * 250, "new\nline", "__cluster_metadata"]
)
def test_a_bad_name_is_refused(admin: AdminClient, name: str) -> None:
    with pytest.raises(KafkaException) as caught:
        create(admin, name)
    assert code_of(caught) in (KafkaError.TOPIC_EXCEPTION, KafkaError.INVALID_REQUEST)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"partitions": 0}, KafkaError.INVALID_PARTITIONS),
        ({"factor": 0}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"factor": 2}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"config": {"no.such.setting": "1"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"cleanup.policy": "burn"}}, KafkaError.INVALID_CONFIG),
    ],
    ids=str,
)
def test_a_topic_that_cannot_be_is_refused(
    admin: AdminClient, make_topic: MakeTopic, settings: dict[str, Any], code: int
) -> None:
    name = make_topic() + "-refused"
    with pytest.raises(KafkaException) as caught:
        create(admin, name, **settings)
    assert code_of(caught) == code
    assert name not in admin.list_topics(timeout=WAIT_S).topics


def test_an_existing_topic_is_not_made_again(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with pytest.raises(KafkaException) as caught:
        create(admin, topic)
    assert code_of(caught) == KafkaError.TOPIC_ALREADY_EXISTS


def test_names_that_differ_only_in_dots_and_underscores_collide(admin: AdminClient, make_topic: MakeTopic) -> None:
    base = make_topic()
    create(admin, f"{base}.x")
    with pytest.raises(KafkaException) as caught:
        create(admin, f"{base}_x")
    assert code_of(caught) == KafkaError.TOPIC_EXCEPTION


def test_deleting_a_topic_frees_its_name(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    first_id = str(describe(admin, topic).topic_id)
    admin.delete_topics([topic], operation_timeout=WAIT_S)[topic].result(WAIT_S)
    at_once(lambda: topic not in admin.list_topics(timeout=WAIT_S).topics)
    create(admin, topic)
    at_once(lambda: str(describe(admin, topic).topic_id) != first_id)


def test_deleting_a_missing_topic_is_an_error(admin: AdminClient, make_topic: MakeTopic) -> None:
    name = make_topic() + "-missing"
    with pytest.raises(KafkaException) as caught:
        admin.delete_topics([name])[name].result(WAIT_S)
    assert code_of(caught) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topic_grows_but_does_not_shrink(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(WAIT_S)
    at_once(lambda: len(describe(admin, topic).partitions) == 5)
    for fewer in (5, 3):
        with pytest.raises(KafkaException) as caught:
            admin.create_partitions([NewPartitions(topic, fewer)])[topic].result(WAIT_S)
        assert code_of(caught) == KafkaError.INVALID_PARTITIONS


def test_describing_a_missing_topic_is_an_error(admin: AdminClient, make_topic: MakeTopic) -> None:
    with pytest.raises(KafkaException) as caught:
        describe(admin, make_topic() + "-missing")
    assert code_of(caught) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_kafka_python_makes_describes_and_deletes_topics(bootstrap: str, make_topic: MakeTopic) -> None:
    name = make_topic() + "-python"
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([PythonNewTopic(name, 3, 1)])
        at_once(lambda: name in admin.list_topics())
        (described,) = admin.describe_topics([name])
        assert len(described["partitions"]) == 3
        with pytest.raises(kafka.errors.TopicAlreadyExistsError):
            admin.create_topics([PythonNewTopic(name, 3, 1)])
        paged = admin.describe_topic_partitions([name], response_partition_limit=2)
        assert [partition["partition_index"] for partition in paged["topics"][0]["partitions"]] == [0, 1]
        assert paged["next_cursor"]["partition_index"] == 2
        admin.delete_topics([name])
        at_once(lambda: name not in admin.list_topics())
    finally:
        admin.close()


def test_aiokafka_makes_describes_and_deletes_topics(bootstrap: str, make_topic: MakeTopic) -> None:
    name = make_topic() + "-aio"

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.create_topics([AioNewTopic(name, 3, 1)])
            assert name in await admin.list_topics()
            (described,) = await admin.describe_topics([name])
            assert len(described["partitions"]) == 3
            await admin.delete_topics([name])
            if OTHER_BROKER is None:
                assert name not in await admin.list_topics()
        finally:
            await admin.close()

    asyncio.run(asyncio.wait_for(run(), WAIT_S))
