"""The result of DescribeConfigs for a setting: its value, the source of that, and the values it would fall back to."""

from enum import IntEnum
from typing import NamedTuple

from quire.config.key import ConfigType


class ConfigSource(IntEnum):
    """The numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    """None for passwords."""
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    """None for passwords, and if there is neither a value nor a default."""
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType
    synonyms: tuple[Synonym, ...]
    """All values that are set for it; the effective one comes first."""

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT

    @property
    def documentation(self) -> str | None:
        from quire.config.documentation import DOCUMENTATION

        return DOCUMENTATION.get(self.name)
