"""A node's configuration: every broker setting with its value now, and where that value comes from.

Layers, from the bottom: Kafka's defaults; what the node was started with (file, environment, --set); the cluster's
dynamic default; this broker's own dynamic value. The static layers are checked as a whole once, here; dynamic changes
are checked by `validate_dynamic` before they are committed, and arrive through `apply_dynamic` afterwards.

Reading is a dictionary look-up, so hot paths may ask every time: `config.get_int("message.max.bytes")`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.config.allowed import Value
from quire.config.broker_keys import BROKER_KEYS
from quire.config.errors import ConfigError
from quire.config.key import ConfigKey, Update
from quire.config.layers import Setting, find_key, from_assignments, from_environment, from_properties
from quire.config.rules import check_rules
from quire.config.security_keys import SECURITY_KEYS
from quire.config.standalone import CONTROLLER_NAME, listening_on, standalone_defaults
from quire.config.topic_keys import BROKER_SYNONYMS, TOPIC_KEYS, UNIT_MS
from quire.config.topology import topology_of
from quire.config.typed_values import TypedValues
from quire.config.unsupported import check_supported, check_supported_topology

if TYPE_CHECKING:
    from quire.config.sources import ConfigEntry

logger = logging.getLogger("quire.config")

_NOT_YET = ("listeners", "listener.security.protocol.map")
"""Kafka opens and closes listeners while it runs; Quire does not."""


class BrokerConfig(TypedValues):
    def __init__(
        self,
        static: Mapping[str, str],
        *,
        hostname: str = "localhost",
        origins: Mapping[str, str] | None = None,
    ) -> None:
        """`static` by Kafka's names; `origins` says where each came from, for errors to point there."""
        origins = origins or {}
        self.static: dict[str, Value] = {}
        for name, text in static.items():
            self.static[name] = _parse(name, text, origins.get(name))
        _join_node_id(self.static)
        self.cluster_wide: dict[str, Value] = {}
        self.per_broker: dict[str, Value] = {}
        super().__init__(self._layered({}, {}))
        self._topic_defaults: dict[str, Value] | None = None
        self._observers: list[Callable[[list[str]], None]] = []
        try:
            self.topology = topology_of(self._values, self.static.keys(), hostname)
            check_rules(self._values)
            check_supported(self._values)
            check_supported_topology(self.topology)
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
        extra: Mapping[str, str] | None = None,
        hostname: str = "localhost",
    ) -> BrokerConfig:
        """All static layers put together, completed to a node on its own where no process.roles are set.

        `file` is a properties file's name and text; `listen` (HOST:PORT) and `data_dir` go above all layers, `extra`
        below them.
        """
        settings: dict[str, Setting] = {name: Setting(text, "default") for name, text in (extra or {}).items()}
        if file is not None:
            settings.update(from_properties(*file))
        settings.update(from_environment(environment or {}))
        settings.update(from_assignments(assignments))
        if data_dir is not None:
            settings.pop("log.dir", None)
            settings["log.dirs"] = Setting(data_dir, "--data")
        if listen is not None:
            names = settings.get("controller.listener.names", Setting(CONTROLLER_NAME, "")).text
            listeners = settings.get("listeners", Setting("", "")).text
            settings["listeners"] = Setting(listening_on(listen, listeners, names), "--listen")
        static = {name: setting.text for name, setting in settings.items()}
        return cls(
            {**static, **standalone_defaults(static)},
            hostname=hostname,
            origins={name: setting.origin for name, setting in settings.items()},
        )

    @classmethod
    def standalone(cls, settings: Mapping[str, str] | None = None, *, listen: str = "127.0.0.1:9092") -> BrokerConfig:
        """A node on its own with a few settings: for tests and the simulator."""
        settings = settings or {}
        return cls({**settings, **standalone_defaults(settings, listen=listen)})

    # Reading

    @property
    def node_id(self) -> int:
        return self.topology.node_id

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.get_list("log.dirs") or self.get_list("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        """Where the metadata log lives: the first data directory unless told otherwise."""
        return self.get_str("metadata.log.dir") if self.get("metadata.log.dir") else self.log_dirs[0]

    @property
    def data_dirs(self) -> list[str]:
        """All directories, that of the metadata log among them."""
        return list(dict.fromkeys((*self.log_dirs, self.metadata_log_dir)))

    def topic_defaults(self) -> Mapping[str, Value]:
        """What a topic setting is where the topic has none of its own."""
        if self._topic_defaults is None:
            self._topic_defaults = {name: self._topic_default(key) for name, key in TOPIC_KEYS.items()}
        return self._topic_defaults

    # Changing while it runs

    def validate_dynamic(self, changes: Mapping[str, str | None], *, per_broker: bool) -> None:
        """Refuses, with a ConfigError, what must not be committed as a dynamic setting; None removes one.

        `changes` are all settings of the resource as they would be afterwards, or just the altered ones.
        """
        parsed: dict[str, Value] = {}
        for name, text in changes.items():
            key = find_key(BROKER_KEYS, name, text)
            if key.update is Update.READ_ONLY:
                raise ConfigError(name, f"{name} cannot be changed while a broker runs: change it and restart.")
            if key.update is Update.PER_BROKER and not per_broker:
                raise ConfigError(name, f"{name} cannot be changed for all brokers at once: name a broker.")
            if name in _NOT_YET or name in SECURITY_KEYS:
                raise ConfigError(name, f"{name} cannot be changed while Quire runs yet: change it and restart.")
            if text is not None:
                parsed[name] = key.parse(text)
        kept = self.per_broker if per_broker else self.cluster_wide
        after = {name: value for name, value in {**kept, **parsed}.items() if changes.get(name, "") is not None}
        values = self._layered(self.cluster_wide, after) if per_broker else self._layered(after, self.per_broker)
        check_rules(values)
        check_supported(values)

    def apply_dynamic(self, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]) -> list[str]:
        """Takes over the committed dynamic settings, all of them, and tells who listens; the settings that changed.

        What cannot be understood (another version wrote it) is said aloud and left out: a node must not stop for it.
        """
        self.cluster_wide = self._understood(cluster_wide)
        self.per_broker = self._understood(per_broker)
        before, self._values = self._values, self._layered(self.cluster_wide, self.per_broker)
        changed = sorted(name for name, value in self._values.items() if value != before[name])
        if changed:
            self._topic_defaults = None
            for observer in list(self._observers):
                try:
                    observer(changed)
                except Exception:
                    # The change is committed and cannot be refused any more; a node must not stop for it.
                    logger.exception("a changed setting could not be taken over: %s", ", ".join(changed))
        return changed

    def when_changed(self, observer: Callable[[list[str]], None]) -> None:
        """Calls `observer` with the names of settings that have just changed."""
        self._observers.append(observer)

    # Describing

    def describe(self, names: Sequence[str] | None = None) -> list[ConfigEntry]:
        """This broker's settings, for DescribeConfigs; unknown names are left out, as Kafka does."""
        from quire.config.describe import describe_broker

        return describe_broker(self, names)

    def describe_cluster_default(self, names: Sequence[str] | None = None) -> list[ConfigEntry]:
        """The dynamic defaults of all brokers: only what was set there."""
        from quire.config.describe import describe_cluster_default

        return describe_cluster_default(self, names)

    def _layered(self, cluster: Mapping[str, Value], broker: Mapping[str, Value]) -> dict[str, Value]:
        values = {name: key.default for name, key in BROKER_KEYS.items()}
        for layer in (self.static, cluster, broker):
            values.update(layer)
        return values

    def _topic_default(self, key: ConfigKey) -> Value:
        for name in BROKER_SYNONYMS.get(key.name, ()):
            value = self._values[name]
            if isinstance(value, int) and key.name == "retention.ms" and value < 0:
                return -1
            if value is not None:
                return _in_milliseconds(name, value)
        return key.default

    def _understood(self, settings: Mapping[str, str]) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for name, text in settings.items():
            try:
                values[name] = find_key(BROKER_KEYS, name, text).parse(text)
            except ConfigError as error:
                logger.error("a dynamic setting is ignored: %s", error)
        return values


def _parse(name: str, text: str, origin: str | None) -> Value:
    try:
        return find_key(BROKER_KEYS, name, text).parse(text)
    except ConfigError as error:
        raise _located(error, origin) from None


def _located(error: ConfigError, origin: str | None) -> ConfigError:
    if origin is None:
        return error
    # `--set node.id=-4 is not allowed` is what was typed; a line or a variable has the sentence after it.
    return ConfigError(error.key, f"{origin}{' ' if origin == '--set' else ': '}{error.message}")


def _join_node_id(static: dict[str, Value]) -> None:
    """broker.id is the old name of node.id; either sets both."""
    node_id, broker_id = static.get("node.id"), static.get("broker.id")
    if node_id is not None and broker_id is not None and node_id != broker_id:
        raise ConfigError("broker.id", f"broker.id={broker_id} differs from node.id={node_id}: remove broker.id.")
    if broker_id is not None:
        static["node.id"] = broker_id
    elif node_id is not None:
        static["broker.id"] = node_id


def _in_milliseconds(name: str, value: Value) -> Value:
    unit_ms = UNIT_MS.get(name.rpartition(".")[2])
    return value * unit_ms if unit_ms is not None and isinstance(value, int) else value
