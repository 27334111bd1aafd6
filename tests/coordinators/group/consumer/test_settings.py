"""The settings of consumer groups: what they allow, and under which names."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.coordinators.group.consumer.settings import ConsumerSettings
from quire.metadata.image import GROUP as GROUP_RESOURCE
from quire.metadata.image import ClusterImage, ConfigResource
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tests.coordinators.group.consumer.consumer_shard import GROUP, ConsumerShard, beat, join

KAFKAS = "org.apache.kafka.coordinator.group.assignor"


def settings(**given: str) -> ConsumerSettings:
    config = BrokerConfig.standalone({name.replace("_", "."): value for name, value in given.items()})
    return ConsumerSettings(config, ClusterImage)


def test_assignors_may_be_called_as_kafkas_classes_are() -> None:
    assert settings().assignors == ["uniform", "range"]
    assert settings(group_consumer_assignors=f"{KAFKAS}.RangeAssignor,uniform").assignors == ["range", "uniform"]


def test_an_unknown_assignor_is_refused_at_the_start() -> None:
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


def test_a_group_uses_its_own_settings_from_the_next_heartbeat_on() -> None:
    shard = ConsumerShard({"group.consumer.min.session.timeout.ms": "1000"})
    shard.put_topic("orders", 1)
    answer = shard.heartbeat(join("alice", "orders"))
    assert isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.heartbeat_interval_ms == 5000
    image = shard.image.copy()
    image.configs[ConfigResource(GROUP_RESOURCE, GROUP)] = {
        "consumer.session.timeout.ms": "9000",
        "consumer.heartbeat.interval.ms": "7000",
    }
    shard.change_image(image)
    shard.wait(9_001)
    assert list(shard.group.members) == ["alice"], "her session timeout was longer at her last heartbeat"
    answer = shard.heartbeat(beat("alice", answer.member_epoch))
    assert isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.heartbeat_interval_ms == 7000
    shard.wait(8_999)
    assert list(shard.group.members) == ["alice"]
    shard.wait(2)
    assert shard.group.is_empty
