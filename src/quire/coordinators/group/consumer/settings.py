"""The `group.consumer.*` settings, read at each use, because some can change while the node runs."""

from collections.abc import Callable

from quire.config.broker_config import BrokerConfig
from quire.config.group_config import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, SESSION_TIMEOUT, group_setting
from quire.coordinators.group.consumer.assignors import ASSIGNORS
from quire.metadata.image import ClusterImage

_OF_CLASS = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


class ConsumerSettings:
    __slots__ = ("_config", "_image")

    def __init__(self, config: BrokerConfig, image: Callable[[], ClusterImage]) -> None:
        self._config = config
        self._image = image

    # --- Settings that a group can override

    def session_timeout_ms(self, group_id: str) -> int:
        return group_setting(self._image().group_configs(group_id), SESSION_TIMEOUT, self._config)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return group_setting(self._image().group_configs(group_id), HEARTBEAT_INTERVAL, self._config)

    def assignment_interval_ms(self, group_id: str) -> int:
        return group_setting(self._image().group_configs(group_id), ASSIGNMENT_INTERVAL, self._config)

    # --- Settings of the broker

    @property
    def regex_refresh_interval_ms(self) -> int:
        return self._config.get_int("group.consumer.regex.refresh.interval.ms")

    @property
    def most_members(self) -> int:
        return self._config.get_int("group.consumer.max.size")

    @property
    def most_classic_members(self) -> int:
        return self._config.get_int("group.max.size")

    @property
    def may_upgrade(self) -> bool:
        return self._config.get_str("group.consumer.migration.policy").lower() in ("upgrade", "bidirectional")

    @property
    def may_downgrade(self) -> bool:
        return self._config.get_str("group.consumer.migration.policy").lower() in ("downgrade", "bidirectional")

    @property
    def classic_session_timeouts_ms(self) -> tuple[int, int]:
        """The minimum and maximum for members of the classic protocol."""
        return (
            self._config.get_int("group.min.session.timeout.ms"),
            self._config.get_int("group.max.session.timeout.ms"),
        )

    @property
    def assignors(self) -> list[str]:
        """Names, the default one first. The setting may also have the names of Kafka's classes."""
        called = [_OF_CLASS.get(name, name) for name in self._config.get_list("group.consumer.assignors")]
        return [name for name in called if name in ASSIGNORS]

    def assignor(self, preferred: str | None) -> str:
        """The preferred assignor, or the default if that one is no longer allowed."""
        allowed = self.assignors
        return preferred if preferred in allowed else allowed[0]
