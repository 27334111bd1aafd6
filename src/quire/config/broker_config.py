"""A node's configuration: the current value of every broker setting, and where that value comes from.

The layers, from the bottom: Kafka's defaults; static settings (file, environment, --set); the cluster's dynamic
default; this broker's own dynamic value. The static layers are checked as a whole once, here. `validate_dynamic` checks
dynamic changes before they are committed, and `apply_dynamic` applies them afterwards.

Reading a setting is a dictionary look-up, so hot paths may do it every time: `config.get_int("message.max.bytes")`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.config.allowed import Value
from quire.config.broker_keys import BROKER_KEYS
from quire.config.errors import ConfigError
from quire.config.key import ConfigKey
from quire.config.layers import DEFAULT, Setting, find_key, from_assignments, from_environment, from_properties
from quire.config.overrides import check_precedence, use_data_dir, use_free_port, use_listen, use_temporary_dir
from quire.config.rules import check_rules
from quire.config.security_effect import check_security_has_effect
from quire.config.standalone import standalone_defaults
from quire.config.topic_keys import BROKER_SYNONYMS, TOPIC_KEYS, UNIT_MS
from quire.config.topology import topology_of
from quire.config.typed_values import TypedValues
from quire.config.unsupported import can_change, check_supported

if TYPE_CHECKING:
    from quire.config.sources import ConfigEntry

logger = logging.getLogger("quire.config")


class BrokerConfig(TypedValues):
    def __init__(
        self,
        static: Mapping[str, str],
        *,
        hostname: str = "localhost",
        origins: Mapping[str, str] | None = None,
    ) -> None:
        """`static` has settings by Kafka's names; `origins` says where each comes from, for error messages."""
        origins = origins or {}
        self.static: dict[str, Value] = {}
        for name, text in static.items():
            self.static[name] = _parse(name, text, origins.get(name))
        _join_node_id(self.static)
        self.cluster_wide: dict[str, Value] = {}
        self.per_broker: dict[str, Value] = {}
        super().__init__(self._layered({}, {}))
        self.warnings: list[str] = []
        """Warnings about these settings for the operator, before the node starts."""
        self._topic_defaults: dict[str, Value] | None = None
        self._cluster_topic_defaults: dict[str, Value] | None = None
        self._observers: list[Callable[[list[str]], None]] = []
        try:
            self.topology = topology_of(self._values, self.static.keys(), hostname)
            check_rules(self._values)
            check_supported(self._values)
        except ConfigError as error:
            raise _located(error, origins.get(error.key)) from None

    @classmethod
    def load(
        cls,
        *,
        file: tuple[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        assignments: Iterable[str] = (),
        listen: str | None = None,
        data_dir: str | None = None,
        temporary_dir: str | None = None,
        free_port: bool = False,
        extra: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
        hostname: str = "localhost",
    ) -> BrokerConfig:
        """Combines all static layers; without process.roles, adds the settings of a standalone node.

        `file` is the name and the text of a properties file. The options are above the layers: `listen` (HOST:PORT)
        and `data_dir`, or for a node that does not last `free_port` and `temporary_dir`. All layers override `extra`.
        `overrides` replace settings at the end: one of several nodes differs by them from a standalone one.
        """
        settings: dict[str, Setting] = {name: Setting(text, DEFAULT) for name, text in (extra or {}).items()}
        if file is not None:
            settings.update(from_properties(*file))
        settings.update(from_environment(environment or {}))
        settings.update(from_assignments(assignments))
        if data_dir is not None:
            use_data_dir(settings, data_dir)
        elif temporary_dir is not None:
            use_temporary_dir(settings, temporary_dir)
        if listen is not None:
            use_listen(settings, listen)
        elif free_port:
            use_free_port(settings)
        check_precedence(settings)
        static = {name: setting.text for name, setting in settings.items()}
        origins = {name: setting.origin for name, setting in settings.items()}
        overrides = overrides or {}
        config = cls(
            {**static, **standalone_defaults(static), **overrides},
            hostname=hostname,
            origins={name: origin for name, origin in origins.items() if name not in overrides},
        )
        changed = {name: value for name, value in config.static.items() if value != BROKER_KEYS[name].default}
        try:
            config.warnings = check_security_has_effect(settings, changed)
        except ConfigError as error:
            raise _located(error, origins[error.key]) from None
        return config

    @classmethod
    def standalone(cls, settings: Mapping[str, str] | None = None, *, listen: str = "127.0.0.1:9092") -> BrokerConfig:
        """A standalone node with a few settings: for tests and the simulator."""
        settings = settings or {}
        return cls({**settings, **standalone_defaults(settings, listen=listen)})

    # --- Reading

    @property
    def node_id(self) -> int:
        return self.topology.node_id

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.get_list("log.dirs") or self.get_list("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        """The directory of the metadata log: the first data directory by default."""
        return self.get_str("metadata.log.dir") if self.get("metadata.log.dir") else self.log_dirs[0]

    @property
    def data_dirs(self) -> list[str]:
        """All directories, including that of the metadata log."""
        return list(dict.fromkeys((*self.log_dirs, self.metadata_log_dir)))

    def topic_defaults(self) -> Mapping[str, Value]:
        """The value of a topic setting for topics that do not override it."""
        if self._topic_defaults is None:
            self._topic_defaults = _topic_defaults(self._values)
        return self._topic_defaults

    def cluster_topic_defaults(self) -> Mapping[str, Value]:
        """The same without the dynamic settings of this broker alone: what the controller decides by."""
        if not self.per_broker:
            return self.topic_defaults()
        if self._cluster_topic_defaults is None:
            self._cluster_topic_defaults = _topic_defaults(self._layered(self.cluster_wide, {}))
        return self._cluster_topic_defaults

    # --- Changing while it runs

    def validate_dynamic(
        self, changes: Mapping[str, str | None], *, per_broker: bool, current: Mapping[str, str] | None = None
    ) -> None:
        """Raises a ConfigError for changes that must not be committed as dynamic settings; None removes a setting.

        `changes` are all settings of the resource after the change, or just the changed ones. `current` are those
        before the change, if the resource is another broker.
        """
        kept = self.per_broker if per_broker else self.cluster_wide
        if current is not None:
            kept = self._understood(current)
        parsed: dict[str, Value] = {}
        for name, text in changes.items():
            key = find_key(BROKER_KEYS, name)
            if text is None and name in kept:
                continue  # Apache Kafka has stored it: it has no effect in Quire, and can be removed.
            if not can_change(key):
                if text is not None:  # a restart does not help if the value is not supported at all
                    check_supported({**self._values, name: key.parse(text)})
                raise ConfigError(name, f"{name} cannot be changed while a broker runs: change it and restart.")
            if text is not None:
                parsed[name] = key.parse(text)
        after = {name: value for name, value in {**kept, **parsed}.items() if changes.get(name, "") is not None}
        values = self._layered(self.cluster_wide, after) if per_broker else self._layered(after, self.per_broker)
        check_rules(values)
        check_supported(values)

    def apply_dynamic(self, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]) -> list[str]:
        """Applies all committed dynamic settings and calls the observers; returns the names that have changed.

        A value that is not valid (another version wrote it) is logged and ignored: a node must not stop because of it.
        """
        self.cluster_wide = self._understood(cluster_wide)
        self.per_broker = self._understood(per_broker)
        self._cluster_topic_defaults = None
        before, self._values = self._values, self._layered(self.cluster_wide, self.per_broker)
        changed = sorted(name for name, value in self._values.items() if value != before[name])
        if changed:
            self._topic_defaults = None
            for observer in list(self._observers):
                try:
                    observer(changed)
                except Exception:
                    # The change is committed and can no longer be refused; a node must not stop because of it.
                    logger.exception("a changed setting could not be taken over: %s", ", ".join(changed))
        return changed

    def when_changed(self, observer: Callable[[list[str]], None]) -> None:
        """Calls `observer` with the names of the settings after each change."""
        self._observers.append(observer)

    # --- Describing

    def describe(self, names: Sequence[str] | None = None) -> list[ConfigEntry]:
        """This broker's settings, for DescribeConfigs; unknown names are left out, as Kafka does."""
        from quire.config.describe import describe_broker

        return describe_broker(self, names)

    def describe_cluster_default(self, names: Sequence[str] | None = None) -> list[ConfigEntry]:
        """The dynamic defaults of all brokers: only the settings that were set."""
        from quire.config.describe import describe_cluster_default

        return describe_cluster_default(self, names)

    def _layered(self, cluster: Mapping[str, Value], broker: Mapping[str, Value]) -> dict[str, Value]:
        values = {name: key.default for name, key in BROKER_KEYS.items()}
        for layer in (self.static, cluster, broker):
            values.update(layer)
        return values

    def _understood(self, settings: Mapping[str, str]) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for name, text in settings.items():
            try:
                values[name] = find_key(BROKER_KEYS, name).parse(text)
            except ConfigError as error:
                logger.error("a dynamic setting is ignored: %s", error)
        return values


def _parse(name: str, text: str, origin: str | None) -> Value:
    try:
        return find_key(BROKER_KEYS, name).parse(text)
    except ConfigError as error:
        raise _located(error, origin) from None


def _located(error: ConfigError, origin: str | None) -> ConfigError:
    if origin is None:
        return error
    # `--set node.id=-4 is not allowed` repeats what was typed; the other origins come before the sentence.
    return ConfigError(error.key, f"{origin}{' ' if origin == '--set' else ': '}{error.message}")


def _join_node_id(static: dict[str, Value]) -> None:
    """broker.id is the old name of node.id; each of them sets both."""
    node_id, broker_id = static.get("node.id"), static.get("broker.id")
    if node_id is not None and broker_id is not None and node_id != broker_id:
        raise ConfigError("broker.id", f"broker.id={broker_id} differs from node.id={node_id}: remove broker.id.")
    if broker_id is not None:
        static["node.id"] = broker_id
    elif node_id is not None:
        static["broker.id"] = node_id


def _topic_defaults(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: _topic_default(values, key) for name, key in TOPIC_KEYS.items()}


def _topic_default(values: Mapping[str, Value], key: ConfigKey) -> Value:
    for name in BROKER_SYNONYMS.get(key.name, ()):
        value = values[name]
        if isinstance(value, int) and key.name == "retention.ms" and value < 0:
            return -1
        if value is not None:
            return _in_milliseconds(name, value)
    return key.default


def _in_milliseconds(name: str, value: Value) -> Value:
    unit_ms = UNIT_MS.get(name.rpartition(".")[2])
    return value * unit_ms if unit_ms is not None and isinstance(value, int) else value
