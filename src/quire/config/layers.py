"""The layers of static settings: a properties file, then the environment, then `--set`, which overrides both.

Each setting keeps its origin, so that an error can name the line or the variable to change. This module looks up names
and collects values; `BrokerConfig` checks them.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quire.config.broker_keys import BROKER_KEYS
from quire.config.errors import ConfigError
from quire.config.key import ConfigKey
from quire.config.security_effect import why_not_supported
from quire.config.topic_keys import BROKER_SYNONYMS, TOPIC_KEYS

ENVIRONMENT_PREFIX = "QUIRE_"


TYPED = "--set"
DEFAULT = "default"
_VARIABLE = "environment variable "


class Setting(NamedTuple):
    text: str
    origin: str

    @property
    def is_typed(self) -> bool:
        """Whether it is on the command line, as --set."""
        return self.origin == TYPED

    @property
    def is_default(self) -> bool:
        return self.origin == DEFAULT

    @property
    def layer(self) -> int:
        """A higher one overrides a lower one."""
        return 2 if self.is_typed else 1 if self.origin.startswith(_VARIABLE) else 0

    @property
    def items(self) -> list[str]:
        return [item.strip() for item in self.text.split(",") if item.strip()]

    def shown(self, name: str) -> str:
        """As the user wrote it, or where."""
        return f"{TYPED} {name}={self.text}" if self.is_typed else f"{name}={self.text} ({self.origin})"


def from_properties(name: str, text: str) -> dict[str, Setting]:
    """The settings of a server.properties; `name` is what errors call the file."""
    from quire.config.properties import read_properties

    return {key: Setting(item.value, f"{name} line {item.line}") for key, item in read_properties(text).items()}


def from_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """QUIRE_LOG_SEGMENT_BYTES sets log.segment.bytes; variables without the prefix are ignored."""
    settings: dict[str, Setting] = {}
    for variable in sorted(environment):
        if variable.startswith(ENVIRONMENT_PREFIX):
            plain = variable.removeprefix(ENVIRONMENT_PREFIX).replace("_", ".").lower()
            own = f"quire.{plain}"
            key = own if own in BROKER_KEYS else plain
            settings[key] = Setting(environment[variable], f"{_VARIABLE}{variable}")
    return settings


def from_assignments(assignments: Iterable[str]) -> dict[str, Setting]:
    """The settings of all `--set key=value` options."""
    settings: dict[str, Setting] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(key, f"--set {assignment}: write it as key=value.")
        settings[key.strip()] = Setting(value, TYPED)
    return settings


def find_key(keys: Mapping[str, ConfigKey], name: str) -> ConfigKey:
    """The key with this name, or a ConfigError that suggests the one that is meant."""
    key = keys.get(name)
    if key is None:
        if reason := why_not_supported(name):
            raise ConfigError(name, f"{name} is not supported: {reason}. Remove it.")
        raise ConfigError(name, f"{name} is {_what_else(keys, name)}: {_advice(keys, name)}.")
    return key


def _what_else(keys: Mapping[str, ConfigKey], name: str) -> str:
    if keys is TOPIC_KEYS and name in BROKER_KEYS:
        return "a setting of brokers, not of topics"
    if keys is BROKER_KEYS and name in TOPIC_KEYS:
        return "a setting of topics, not of brokers"
    return "not a setting of Quire or Kafka 4.3"


def _advice(keys: Mapping[str, ConfigKey], name: str) -> str:
    if name.startswith("zookeeper."):
        return "Kafka no longer uses ZooKeeper; remove it"
    from difflib import get_close_matches

    for topic_name, broker_names in BROKER_SYNONYMS.items():
        if keys is TOPIC_KEYS and name in broker_names:
            return f"perhaps {topic_name} is meant"
        if keys is BROKER_KEYS and name == topic_name:
            return f"perhaps {broker_names[0]} is meant"
    nearest = [] if name in TOPIC_KEYS or name in BROKER_KEYS else get_close_matches(name, list(keys), n=1, cutoff=0.75)
    return f"perhaps {nearest[0]} is meant" if nearest else "remove it"
