"""Kafka's settings for tiered storage. The names are known, but `unsupported.py` refuses to enable it."""

from quire.config.allowed import NOT_EMPTY, at_least
from quire.config.key import BOOLEAN, CLUSTER_WIDE, INT, LONG, STRING, ConfigKey, table
from quire.config.units import GIB, LONG_MAX

REMOTE_KEYS = table(
    ConfigKey("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None, CLUSTER_WIDE),
    ConfigKey("remote.fetch.max.wait.ms", INT, 500, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.list.offsets.request.timeout.ms", LONG, 30_000, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.log.index.file.cache.total.size.bytes", LONG, GIB, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.log.manager.copier.thread.pool.size", INT, 10, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.log.manager.copy.quota.window.num", INT, 11, at_least(1)),
    ConfigKey("remote.log.manager.copy.quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigKey("remote.log.manager.expiration.thread.pool.size", INT, 10, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.log.manager.fetch.quota.window.num", INT, 11, at_least(1)),
    ConfigKey("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigKey("remote.log.manager.follower.thread.pool.size", INT, 2, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.log.manager.task.interval.ms", LONG, 30_000, at_least(1)),
    ConfigKey("remote.log.manager.thread.pool.size", INT, 2, at_least(1)),
    ConfigKey("remote.log.metadata.custom.metadata.max.bytes", INT, 128, at_least(0)),
    ConfigKey(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NOT_EMPTY,
    ),
    ConfigKey("remote.log.metadata.manager.class.path", STRING, None),
    ConfigKey("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", NOT_EMPTY),
    ConfigKey("remote.log.metadata.manager.listener.name", STRING, None, NOT_EMPTY),
    ConfigKey("remote.log.reader.max.pending.tasks", INT, 100, at_least(1)),
    ConfigKey("remote.log.reader.threads", INT, 10, at_least(1), CLUSTER_WIDE),
    ConfigKey("remote.log.storage.manager.class.name", STRING, None, NOT_EMPTY),
    ConfigKey("remote.log.storage.manager.class.path", STRING, None),
    ConfigKey("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", NOT_EMPTY),
    ConfigKey("remote.log.storage.system.enable", BOOLEAN, False),
)
