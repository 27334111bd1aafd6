"""The settings of consumer groups: what they allow, and under which names."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.coordinators.group.consumer.settings import ConsumerSettings

KAFKAS = "org.apache.kafka.coordinator.group.assignor"


def settings(**given: str) -> ConsumerSettings:
    return ConsumerSettings(BrokerConfig.standalone({name.replace("_", "."): value for name, value in given.items()}))


def test_assignors_may_be_called_as_kafkas_classes_are() -> None:
    assert settings().assignors == ["uniform", "range"]
    assert settings(group_consumer_assignors=f"{KAFKAS}.RangeAssignor,uniform").assignors == ["range", "uniform"]


def test_an_assignor_that_is_not_there_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match="uniform and range"):
        settings(group_consumer_assignors="uniform,com.example.MyAssignor")


def test_members_get_the_assignor_they_ask_for_as_long_as_it_is_allowed() -> None:
    only_range = settings(group_consumer_assignors="range")
    assert settings().assignor("range") == "range"
    assert settings().assignor(None) == "uniform"
    assert only_range.assignor("uniform") == "range"


@pytest.mark.parametrize(
    ("policy", "upgrade", "downgrade"),
    [
        ("disabled", False, False),
        ("UPGRADE", True, False),
        ("Downgrade", False, True),
        ("bidirectional", True, True),
    ],
)
def test_the_migration_policy_says_in_which_direction_groups_may_go(
    policy: str, upgrade: bool, downgrade: bool
) -> None:
    of_policy = settings(group_consumer_migration_policy=policy)
    assert (of_policy.may_upgrade, of_policy.may_downgrade) == (upgrade, downgrade)
