"""Configuration with Kafka's names, defaults and rules; no files, no environment: callers hand over text.

The tables of keys are the product's own data (`broker_keys.py`, `topic_keys.py` and their neighbours; Quire's few own
keys in `quire_keys.py`). `BrokerConfig` is a node's configuration, `TopicConfig` a topic's; `ConfigError` is a sentence
for whoever wrote a setting that cannot be.
"""

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.listeners import Listener
from quire.config.sources import ConfigEntry, ConfigSource, Synonym
from quire.config.standalone import EPHEMERAL_SETTINGS, standalone_defaults
from quire.config.topic_config import TopicConfig, validate_topic_configs

__all__ = [
    "EPHEMERAL_SETTINGS",
    "BrokerConfig",
    "ConfigEntry",
    "ConfigError",
    "ConfigSource",
    "Listener",
    "Synonym",
    "TopicConfig",
    "standalone_defaults",
    "validate_topic_configs",
]
