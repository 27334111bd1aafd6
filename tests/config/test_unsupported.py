"""Classes of Kafka that a setting may name, because Quire does the same without them."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError


@pytest.mark.parametrize("name", ["LeaderSelector", "RackAwareReplicaSelector"])
def test_the_replica_selectors_of_kafka_are_accepted(name: str) -> None:
    known = f"org.apache.kafka.common.replica.{name}"
    assert BrokerConfig.standalone({"replica.selector.class": known}).get_str("replica.selector.class") == known


def test_another_replica_selector_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.standalone({"replica.selector.class": "com.example.NearestSelector"})
    assert caught.value.message == (
        "replica.selector.class=com.example.NearestSelector is not supported: Quire has Kafka's LeaderSelector and "
        "RackAwareReplicaSelector, and does not load Java classes. Remove it."
    )
