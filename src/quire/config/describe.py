"""Settings for DescribeConfigs: the value, its source, and all values that it would fall back to.

Called by `BrokerConfig.describe`, `TopicConfig.describe` and `describe_group`.
"""

from collections.abc import Sequence

from quire.config.allowed import Value
from quire.config.broker_config import BrokerConfig
from quire.config.broker_keys import BROKER_KEYS
from quire.config.key import ConfigKey
from quire.config.sources import ConfigEntry, ConfigSource, Synonym
from quire.config.topic_keys import BROKER_SYNONYMS, TOPIC_KEYS
from quire.config.unsupported import can_change

_GROUPS = {name: group for group in BROKER_SYNONYMS.values() if len(group) > 1 for name in group}
"""Broker settings that exist in several units, each with its whole group."""
# log.flush.interval.ms falls back to the scheduler's interval, never the other way round.
del _GROUPS["log.flush.scheduler.interval.ms"]


def describe_broker(config: BrokerConfig, names: Sequence[str] | None) -> list[ConfigEntry]:
    wanted = BROKER_KEYS if names is None else [name for name in names if name in BROKER_KEYS]
    return [
        _entry(BROKER_KEYS[name], config.get(name), broker_synonyms(config, name))
        for name in wanted
        if not BROKER_KEYS[name].internal or name in config.static
    ]


def describe_cluster_default(config: BrokerConfig, names: Sequence[str] | None) -> list[ConfigEntry]:
    entries = []
    for name, value in config.cluster_wide.items():
        if names is None or name in names:
            synonyms = broker_synonyms(config, name)
            own = tuple(item for item in synonyms if item.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
            entries.append(_entry(BROKER_KEYS[name], value, own))
    return entries


def describe_topic_setting(name: str, value: Value, overridden: bool, config: BrokerConfig) -> ConfigEntry:
    key = TOPIC_KEYS[name]
    synonyms = broker_synonyms(config, BROKER_SYNONYMS[name][0]) if name in BROKER_SYNONYMS else ()
    if overridden:
        synonyms = (Synonym(name, key.format(value), ConfigSource.DYNAMIC_TOPIC), *synonyms)
    return _entry(key, value, synonyms)._replace(read_only=False)


def describe_group_setting(key: ConfigKey, own: int | None, broker_name: str, config: BrokerConfig) -> ConfigEntry:
    synonyms = broker_synonyms(config, broker_name)
    if own is not None:
        synonyms = (Synonym(key.name, key.format(own), ConfigSource.DYNAMIC_GROUP), *synonyms)
    return _entry(key, config.get(broker_name) if own is None else own, synonyms)._replace(read_only=False)


def broker_synonyms(config: BrokerConfig, name: str) -> tuple[Synonym, ...]:
    """All values that are set for a broker setting, in any unit; the effective one comes first."""
    group = _GROUPS.get(name, (name,))
    layers = (
        (config.per_broker, ConfigSource.DYNAMIC_BROKER),
        (config.cluster_wide, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (config.static, ConfigSource.STATIC_BROKER),
    )
    found = [_synonym(item, values[item], source) for values, source in layers for item in group if item in values]
    defaults = ((item, BROKER_KEYS[item].default) for item in group)
    found += [_synonym(item, value, ConfigSource.DEFAULT) for item, value in defaults if value is not None]
    return tuple(found)


def _synonym(name: str, value: Value, source: ConfigSource) -> Synonym:
    key = BROKER_KEYS[name]
    return Synonym(name, None if key.sensitive else key.format(value), source)


def _entry(key: ConfigKey, value: Value, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    return ConfigEntry(
        key.name,
        None if key.sensitive else key.format(value),
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        not can_change(key),
        key.sensitive,
        key.type,
        synonyms,
    )
