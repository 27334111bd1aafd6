"""The tables of keys are complete, consistent, and agree with Kafka 4.3."""

import subprocess
import sys

import pytest

from quire.config.broker_keys import BROKER_KEYS
from quire.config.documentation import DOCUMENTATION
from quire.config.key import ConfigType, Update
from quire.config.quire_keys import QUIRE_KEYS
from quire.config.quota_keys import QUOTA_KEYS
from quire.config.topic_keys import BROKER_SYNONYMS, TOPIC_KEYS

ALL = [*BROKER_KEYS.values(), *TOPIC_KEYS.values()]


def test_every_setting_of_kafka_4_3_is_defined() -> None:
    others = QUIRE_KEYS | QUOTA_KEYS
    public = [key for key in BROKER_KEYS.values() if not key.internal and key.name not in others]
    assert len(public) == 340
    assert len([key for key in TOPIC_KEYS.values() if not key.internal]) == 33


def test_every_default_survives_being_written_and_read() -> None:
    for key in ALL:
        text = key.format(key.default)
        assert (None if text is None else key.parse(text)) == key.default, key


@pytest.mark.parametrize(
    ("name", "type_", "default", "update"),
    [
        ("log.segment.bytes", ConfigType.INT, 1073741824, Update.CLUSTER_WIDE),
        ("message.max.bytes", ConfigType.INT, 1048588, Update.CLUSTER_WIDE),
        ("log.retention.hours", ConfigType.INT, 168, Update.READ_ONLY),
        ("log.retention.ms", ConfigType.LONG, None, Update.CLUSTER_WIDE),
        ("listeners", ConfigType.LIST, ("PLAINTEXT://:9092",), Update.PER_BROKER),
        ("auto.create.topics.enable", ConfigType.BOOLEAN, True, Update.READ_ONLY),
        ("ssl.keystore.password", ConfigType.PASSWORD, None, Update.PER_BROKER),
        ("offsets.topic.replication.factor", ConfigType.SHORT, 3, Update.READ_ONLY),
        ("log.cleaner.io.max.bytes.per.second", ConfigType.DOUBLE, 1.7976931348623157e308, Update.CLUSTER_WIDE),
        ("fetch.max.bytes", ConfigType.INT, 57671680, Update.READ_ONLY),
    ],
)
def test_well_known_settings_are_as_kafka_has_them(
    name: str, type_: ConfigType, default: object, update: Update
) -> None:
    key = BROKER_KEYS[name]
    assert (key.type, key.default, key.update) == (type_, default, update)


def test_a_topic_setting_and_its_broker_settings_have_the_same_default() -> None:
    for name, synonyms in BROKER_SYNONYMS.items():
        key = TOPIC_KEYS[name]
        if len(synonyms) == 1:
            assert BROKER_KEYS[synonyms[0]].default == key.default, name
            assert BROKER_KEYS[synonyms[0]].type is key.type, name
        assert BROKER_KEYS[synonyms[0]].update is Update.CLUSTER_WIDE, name


def test_only_replica_throttles_and_tiered_storage_have_no_broker_setting_behind_them() -> None:
    alone = [name for name in TOPIC_KEYS if name not in BROKER_SYNONYMS]
    assert sorted(alone) == [
        "follower.replication.throttled.replicas",
        "internal.segment.bytes",
        "leader.replication.throttled.replicas",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    ]


def test_documentation_is_only_of_settings_that_exist() -> None:
    assert [name for name in DOCUMENTATION if name not in BROKER_KEYS and name not in TOPIC_KEYS] == []
    assert all(text.endswith(".") for text in DOCUMENTATION.values())


def test_own_settings_are_recognised_by_their_name() -> None:
    assert all(name.startswith("quire.") for name in QUIRE_KEYS)
    assert [name for name in BROKER_KEYS if name.startswith("quire.")] == list(QUIRE_KEYS)


def test_the_configuration_imports_nothing_heavy() -> None:
    code = "import sys, quire.config.topic_config; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = loaded.stdout.split()
    assert "quire.config.documentation" not in modules
    assert "difflib" not in modules
    assert "dataclasses" not in modules
    assert "quire.config.sources" not in modules
