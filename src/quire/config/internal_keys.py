"""Settings for Kafka's own tests and developers: accepted, and shown only if they are set."""

from quire.config.allowed import at_least, between
from quire.config.key import BOOLEAN, DOUBLE, INT, LONG, STRING, ConfigKey, table
from quire.config.units import LONG_MAX, MIB, MINUTE_MS

INTERNAL_KEYS = table(
    ConfigKey("controller.performance.always.log.threshold.ms", LONG, 2000, at_least(0), internal=True),
    ConfigKey("controller.performance.sample.period.ms", LONG, MINUTE_MS, at_least(100), internal=True),
    ConfigKey("group.consumer.regex.refresh.interval.ms", INT, 10 * MINUTE_MS, at_least(10_000), internal=True),
    ConfigKey("group.share.initialize.retry.interval.ms", INT, 30_000, at_least(1), internal=True),
    ConfigKey(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        internal=True,
    ),
    ConfigKey("internal.metadata.delete.delay.millis", LONG, MINUTE_MS, internal=True),
    ConfigKey("internal.metadata.log.segment.bytes", INT, None, internal=True),
    ConfigKey("internal.metadata.max.batch.size.in.bytes", INT, 8 * MIB, internal=True),
    ConfigKey("log.initial.task.delay.ms", LONG, 30_000, at_least(0), internal=True),
    ConfigKey("producer.id.expiration.check.interval.ms", INT, 10 * MINUTE_MS, at_least(1), internal=True),
    ConfigKey("remote.log.index.file.cache.ttl.ms", LONG, 15 * MINUTE_MS, at_least(-1), internal=True),
    ConfigKey("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, at_least(1), internal=True),
    ConfigKey("remote.log.manager.task.retry.backoff.ms", LONG, 500, at_least(1), internal=True),
    ConfigKey("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, between(0, 0.5), internal=True),
    ConfigKey("server.max.startup.time.ms", LONG, LONG_MAX, at_least(0), internal=True),
    ConfigKey("share.coordinator.cold.partition.snapshot.interval.ms", INT, 5 * MINUTE_MS, at_least(1), internal=True),
    ConfigKey("share.coordinator.state.topic.prune.interval.ms", INT, 5 * MINUTE_MS, at_least(1), internal=True),
    ConfigKey("unclean.leader.election.interval.ms", LONG, 5 * MINUTE_MS, at_least(1), internal=True),
    ConfigKey("unstable.api.versions.enable", BOOLEAN, False, internal=True),
    ConfigKey("unstable.feature.versions.enable", BOOLEAN, False, internal=True),
)
