"""`Throttles`: the replication quotas of this broker, as the settings say.

`leader.replication.throttled.rate` and `follower.replication.throttled.rate` are dynamic settings of the broker. The
`.replicas` of a topic name pairs of partition and broker, or `*`: a pair counts for the quota of the broker in it. So
the leader's list names the brokers that send, and the follower's those that copy.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.topic_keys import TOPIC_KEYS
from quire.metadata.delta import ImageDelta
from quire.metadata.image import TOPIC
from quire.node.replicas.rate_window import RateWindow
from quire.node.replicas.replication_quota import ReplicationQuota
from quire.seams import Clock

if TYPE_CHECKING:
    from quire.metadata.image import ClusterImage

LEADER_RATE, LEADER_REPLICAS = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"
FOLLOWER_RATE, FOLLOWER_REPLICAS = "follower.replication.throttled.rate", "follower.replication.throttled.replicas"


class Throttles:
    __slots__ = ("_config", "changed", "follower", "leader")

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._config = config
        self.leader = self._quota(clock, LEADER_RATE)
        self.follower = self._quota(clock, FOLLOWER_RATE)
        self.changed: Callable[[], None] = lambda: None
        """A rate or a list has changed: those that wait look again."""
        config.when_changed(self._settings_changed)

    def _quota(self, clock: Clock, rate: str) -> ReplicationQuota:
        config = self._config
        sample_ms = 1000.0 * config.get_int("replication.quota.window.size.seconds")
        window = RateWindow(config.get_int("replication.quota.window.num"), sample_ms)
        return ReplicationQuota(clock, window, config.get_int(rate))

    def _settings_changed(self, changed: list[str]) -> None:
        if LEADER_RATE in changed or FOLLOWER_RATE in changed:
            self.leader.set_rate(self._config.get_int(LEADER_RATE))
            self.follower.set_rate(self._config.get_int(FOLLOWER_RATE))
            self._tell()

    def metadata_changed(self, image: "ClusterImage", delta: ImageDelta) -> None:
        has_changed = False
        for resource in delta.configs:
            if resource.type == TOPIC:
                settings = image.topic_configs(resource.name)
                has_changed |= self._set(self.leader, resource.name, LEADER_REPLICAS, settings)
                has_changed |= self._set(self.follower, resource.name, FOLLOWER_REPLICAS, settings)
        if has_changed:
            self._tell()

    def _tell(self) -> None:
        self.changed()
        self.leader.wake_now()
        self.follower.wake_now()

    def _set(self, quota: ReplicationQuota, topic: str, name: str, settings: dict[str, str]) -> bool:
        indexes = self._indexes(name, settings.get(name, ""))
        before = quota.throttled.get(topic, frozenset())
        if indexes == before:
            return False
        if indexes is None or indexes:
            quota.throttled[topic] = indexes
        else:
            del quota.throttled[topic]
        return True

    def _indexes(self, name: str, text: str) -> frozenset[int] | None:
        """The partitions that this broker throttles; None for all.

        A value that is not valid, because another version wrote it, throttles nothing; `TopicConfig` logs it.
        """
        try:
            items = TOPIC_KEYS[name].parse(text)
        except ConfigError:
            return frozenset()
        assert isinstance(items, tuple)
        if items == ("*",):
            return None
        pairs = (item.split(":") for item in items)
        return frozenset(int(index) for index, broker in pairs if int(broker) == self._config.node_id)

    def close(self) -> None:
        self.leader.close()
        self.follower.close()
