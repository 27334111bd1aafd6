"""What DescribeConfigs tells about a setting: its value, where that comes from, and what it would fall back to."""

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
    """None for passwords, and where nothing is set and nothing is the default."""
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType
    synonyms: tuple[Synonym, ...]
    """Everything that is set for it, the one that holds first."""

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT

    @property
    def documentation(self) -> str | None:
        from quire.config.documentation import DOCUMENTATION

        return DOCUMENTATION.get(self.name)
