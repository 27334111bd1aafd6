"""Configuration with Kafka's names, defaults and rules. It reads no files and no environment: callers pass the text.

The tables of keys are in `broker_keys.py`, `topic_keys.py` and the other `*_keys.py`; Quire's few own keys are in
`quire_keys.py`. `broker_config.BrokerConfig` is a node's configuration, `topic_config.TopicConfig` a topic's.
`layers.py` and `overrides.py` merge the file, the environment and the command line; `topology.py`, `rules.py`,
`unsupported.py` and `security_effect.py` refuse what cannot work. `errors.ConfigError` has a sentence for the user who
wrote an invalid setting.
"""
