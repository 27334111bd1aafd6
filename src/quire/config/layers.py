"""Where static settings come from: a properties file, below the environment, below `--set`.

Each setting remembers its origin, so that an error can point at the line or the variable to change. Here names are
looked up and values only collected; `BrokerConfig` checks them.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quire.config.broker_keys import BROKER_KEYS
from quire.config.errors import ConfigError
from quire.config.key import ConfigKey

ENVIRONMENT_PREFIX = "QUIRE_"


class Setting(NamedTuple):
    text: str
    origin: str


def from_properties(name: str, text: str) -> dict[str, Setting]:
    """The settings of a server.properties; `name` is what errors call the file."""
    from quire.config.properties import read_properties

    return {key: Setting(item.value, f"{name} line {item.line}") for key, item in read_properties(text).items()}


def from_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """QUIRE_LOG_SEGMENT_BYTES stands for log.segment.bytes; other variables are not looked at."""
    settings: dict[str, Setting] = {}
    for variable in sorted(environment):
        if variable.startswith(ENVIRONMENT_PREFIX):
            plain = variable.removeprefix(ENVIRONMENT_PREFIX).replace("_", ".").lower()
            own = f"quire.{plain}"
            key = own if own in BROKER_KEYS else plain
            settings[key] = Setting(environment[variable], f"environment variable {variable}")
    return settings


def from_assignments(assignments: Iterable[str]) -> dict[str, Setting]:
    """`--set key=value`, as often as given."""
    settings: dict[str, Setting] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(key, f"--set {assignment}: write it as key=value.")
        settings[key.strip()] = Setting(value, "--set")
    return settings


def find_key(keys: Mapping[str, ConfigKey], name: str, value: str | None) -> ConfigKey:
    """The key called `name`, or a ConfigError that suggests the nearest one."""
    key = keys.get(name)
    if key is None:
        shown = name if value is None or _may_be_secret(name) else f"{name}={value}"
        raise ConfigError(name, f"{shown} is not a setting of Quire or Kafka 4.3: {_advice(keys, name)}.")
    return key


def _may_be_secret(name: str) -> bool:
    return any(word in name.lower() for word in ("password", "secret", "jaas", "credential", "token", "key"))


def _advice(keys: Mapping[str, ConfigKey], name: str) -> str:
    if name.startswith("zookeeper."):
        return "there is no ZooKeeper any more, remove it"
    if name.startswith("listener.name."):
        return "settings for a single listener are not there yet, set it for all or remove it"
    from difflib import get_close_matches

    nearest = get_close_matches(name, list(keys), n=1, cutoff=0.75)
    return f"perhaps {nearest[0]} is meant" if nearest else "remove it"
