"""Configuration with Kafka's names, defaults and rules; no files, no environment: callers hand over text.

The tables of keys are the product's own data (`broker_keys.py`, `topic_keys.py` and their neighbours; Quire's few own
keys in `quire_keys.py`). `broker_config.BrokerConfig` is a node's configuration, `topic_config.TopicConfig` a topic's;
`errors.ConfigError` is a sentence for whoever wrote a setting that cannot be.
"""
