"""Settings of single consumer groups override the broker's, within its bounds."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.group_config import (
    ASSIGNMENT_INTERVAL,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    describe_group,
    group_setting,
    validate_group_configs,
)
from quire.config.sources import ConfigSource

BROKER = BrokerConfig.standalone(
    {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.max.session.timeout.ms": "60000",
        "group.consumer.min.heartbeat.interval.ms": "100",
    }
)


def test_a_setting_that_a_group_lacks_is_the_brokers() -> None:
    own = {SESSION_TIMEOUT: "9000"}
    assert group_setting(own, SESSION_TIMEOUT, BROKER) == 9000
    assert group_setting({}, SESSION_TIMEOUT, BROKER) == 45_000
    assert group_setting(own, ASSIGNMENT_INTERVAL, BROKER) == 1000


def test_when_the_brokers_bounds_have_changed_the_nearest_value_within_them_holds() -> None:
    assert group_setting({SESSION_TIMEOUT: "500"}, SESSION_TIMEOUT, BROKER) == 1000
    assert group_setting({SESSION_TIMEOUT: "70000"}, SESSION_TIMEOUT, BROKER) == 60_000


def test_unknown_settings_of_other_versions_are_ignored() -> None:
    assert group_setting({SESSION_TIMEOUT: "long", "share.new": "1"}, SESSION_TIMEOUT, BROKER) == 45_000


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({SESSION_TIMEOUT: "999"}, "from 1000 .group.consumer.min.session.timeout.ms. to 60000"),
        ({HEARTBEAT_INTERVAL: "15001"}, "group.consumer.max.heartbeat.interval.ms"),
        ({HEARTBEAT_INTERVAL: "often"}, "a whole number"),
        ({SESSION_TIMEOUT: "5000"}, "must be more than consumer.heartbeat.interval.ms=5000"),
        ({SESSION_TIMEOUT: "3000", HEARTBEAT_INTERVAL: "3000"}, "set them together"),
        ({"consumer.session.timeout": "5000"}, "perhaps consumer.session.timeout.ms is meant"),
        ({"share.session.timeout.ms": "45000"}, "no share groups"),
    ],
)
def test_invalid_values_are_refused_with_what_to_do(own: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        validate_group_configs(own, BROKER)


def test_valid_values_are_accepted() -> None:
    validate_group_configs({SESSION_TIMEOUT: "3000", HEARTBEAT_INTERVAL: "2999", ASSIGNMENT_INTERVAL: "0"}, BROKER)


def test_a_description_says_where_a_value_comes_from() -> None:
    (entry,) = describe_group({SESSION_TIMEOUT: " 9000"}, BROKER, [SESSION_TIMEOUT, "unknown"])
    assert (entry.value, entry.source, entry.read_only) == ("9000", ConfigSource.DYNAMIC_GROUP, False)
    assert [(each.name, each.value) for each in entry.synonyms] == [
        (SESSION_TIMEOUT, "9000"),
        ("group.consumer.session.timeout.ms", "45000"),
    ]
    assert len(describe_group({}, BROKER, None)) == 3
