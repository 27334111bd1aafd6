"""Settings of topics and brokers read and changed through admin clients; changes take effect without a restart."""

import asyncio
from typing import Any

import confluent_kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from kafka.admin import ConfigResource as PythonConfigResource
from kafka.admin import ConfigResourceType as PythonConfigResourceType
from kafka.admin import KafkaAdminClient

from tests.wire.clients import WAIT_S, Confluent, Message, at_once
from tests.wire.conftest import MakeTopic

SET, DELETE = AlterConfigOpType.SET, AlterConfigOpType.DELETE
APPEND, SUBTRACT = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT


def configs(admin: AdminClient, kind: str, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(WAIT_S)
    return found


def alter(
    admin: AdminClient, kind: str, name: str, *changes: tuple[str, AlterConfigOpType, str | None], **more: Any
) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=operation) for key, operation, value in changes]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource], **more)[resource].result(WAIT_S)


def code_of(caught: pytest.ExceptionInfo[KafkaException]) -> int:
    error: KafkaError = caught.value.args[0]
    return int(error.code())


def node_id(admin: AdminClient) -> str:
    return str(next(iter(admin.list_topics(timeout=WAIT_S).brokers)))


def test_a_topics_settings_say_where_each_comes_from(admin: AdminClient, make_topic: MakeTopic) -> None:
    found = configs(admin, "topic", make_topic(retention_ms="123456"))
    own, default = found["retention.ms"], found["max.message.bytes"]
    assert (own.value, own.source, own.is_default) == ("123456", ConfigSource.DYNAMIC_TOPIC_CONFIG.value, False)
    assert (default.value, default.source, default.is_default) == ("1048588", ConfigSource.DEFAULT_CONFIG.value, True)
    assert not own.is_read_only
    assert not own.is_sensitive


def test_a_brokers_settings_are_shown(admin: AdminClient) -> None:
    found = configs(admin, "broker", node_id(admin))
    assert found["node.id"].value == node_id(admin)
    assert found["node.id"].is_read_only
    assert found["message.max.bytes"].value == "1048588"
    assert not found["message.max.bytes"].is_read_only


def test_settings_are_changed_one_by_one_and_given_back(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(retention_ms="1000")
    alter(admin, "topic", topic, ("segment.bytes", SET, "2000000"))
    at_once(lambda: configs(admin, "topic", topic)["segment.bytes"].value == "2000000")
    assert configs(admin, "topic", topic)["retention.ms"].value == "1000"
    alter(admin, "topic", topic, ("retention.ms", DELETE, None))
    at_once(lambda: configs(admin, "topic", topic)["retention.ms"].value == "604800000")


def test_lists_are_appended_to_and_subtracted_from(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    alter(admin, "topic", topic, ("cleanup.policy", APPEND, "compact"))
    at_once(lambda: configs(admin, "topic", topic)["cleanup.policy"].value == "delete,compact")
    alter(admin, "topic", topic, ("cleanup.policy", SUBTRACT, "delete"))
    at_once(lambda: configs(admin, "topic", topic)["cleanup.policy"].value == "compact")


def test_the_older_call_replaces_all_settings_of_a_topic(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(retention_ms="1000")
    resource = ConfigResource("topic", topic, set_config={"segment.bytes": "3000000"})
    admin.alter_configs([resource])[resource].result(WAIT_S)
    at_once(lambda: configs(admin, "topic", topic)["segment.bytes"].value == "3000000")
    assert configs(admin, "topic", topic)["retention.ms"].is_default


def test_validate_only_changes_nothing(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    alter(admin, "topic", topic, ("retention.ms", SET, "5"), validate_only=True)
    assert configs(admin, "topic", topic)["retention.ms"].is_default


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("no.such.setting", SET, "1"), KafkaError.INVALID_CONFIG),
        (("retention.ms", SET, "soon"), KafkaError.INVALID_CONFIG),
        (("max.message.bytes", SET, "-1"), KafkaError.INVALID_CONFIG),
        (("retention.ms", APPEND, "1"), KafkaError.INVALID_CONFIG),
    ],
    ids=str,
)
def test_a_bad_change_is_refused(
    admin: AdminClient, make_topic: MakeTopic, change: tuple[str, AlterConfigOpType, str], code: int
) -> None:
    with pytest.raises(KafkaException) as caught:
        alter(admin, "topic", make_topic(), change)
    assert code_of(caught) == code


def test_settings_of_a_missing_resource(admin: AdminClient, make_topic: MakeTopic) -> None:
    missing = make_topic() + "-missing"
    with pytest.raises(KafkaException) as caught:
        configs(admin, "topic", missing)
    assert code_of(caught) == KafkaError.UNKNOWN_TOPIC_OR_PART
    with pytest.raises(KafkaException) as caught:
        alter(admin, "topic", missing, ("retention.ms", SET, "1"))
    assert code_of(caught) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_changed_limit_holds_from_the_next_message_on(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    large = [Message(b"x" * 50_000)]
    Confluent().produce(bootstrap, topic, large)
    alter(admin, "topic", topic, ("max.message.bytes", SET, "10000"))
    with pytest.raises(confluent_kafka.KafkaException, match="MSG_SIZE_TOO_LARGE"):
        Confluent().produce(bootstrap, topic, large)
    alter(admin, "topic", topic, ("max.message.bytes", DELETE, None))
    Confluent().produce(bootstrap, topic, large)


def test_a_brokers_dynamic_setting_reaches_topics_that_have_none_of_their_own(
    admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    alter(admin, "broker", node_id(admin), ("log.segment.bytes", SET, "7000000"))
    try:
        at_once(lambda: configs(admin, "topic", topic)["segment.bytes"].value == "7000000")
        assert configs(admin, "topic", topic)["segment.bytes"].source == ConfigSource.DYNAMIC_BROKER_CONFIG.value
        assert configs(admin, "broker", node_id(admin))["log.segment.bytes"].value == "7000000"
    finally:
        alter(admin, "broker", node_id(admin), ("log.segment.bytes", DELETE, None))
    at_once(lambda: configs(admin, "topic", topic)["segment.bytes"].is_default)


def test_a_read_only_broker_setting_cannot_be_changed(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as caught:
        alter(admin, "broker", node_id(admin), ("node.id", SET, "77"))
    assert code_of(caught) in (KafkaError.INVALID_REQUEST, KafkaError.INVALID_CONFIG)


def test_kafka_python_reads_and_changes_settings(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        change = PythonConfigResource(PythonConfigResourceType.TOPIC, topic, {"retention.ms": "777"})
        admin.alter_configs([change])
        found = admin.describe_configs([PythonConfigResource(PythonConfigResourceType.TOPIC, topic)])
        assert "777" in str(found)
        assert topic in str(admin.list_config_resources())
    finally:
        admin.close()


def test_aiokafka_reads_and_changes_settings(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.alter_configs([AioConfigResource(AioConfigResourceType.TOPIC, topic, {"retention.ms": "778"})])
            (found,) = await admin.describe_configs([AioConfigResource(AioConfigResourceType.TOPIC, topic)])
            assert "778" in str(found)
        finally:
            await admin.close()

    asyncio.run(asyncio.wait_for(run(), WAIT_S))
