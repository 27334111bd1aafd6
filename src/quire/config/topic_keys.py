"""Kafka's topic settings, and the broker settings that they fall back to."""

from quire.config.allowed import THROTTLED_REPLICAS, any_of, at_least, between, one_of
from quire.config.key import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, ConfigKey, table
from quire.config.units import DAY_MS, GIB, HOUR_MS, KIB, LONG_MAX, MIB, MINUTE_MS

TOPIC_KEYS = table(
    ConfigKey("cleanup.policy", LIST, ("delete",), any_of("compact", "delete")),
    ConfigKey("compression.gzip.level", INT, -1, between(1, 9, also=-1)),
    ConfigKey("compression.lz4.level", INT, 9, between(1, 17)),
    ConfigKey(
        "compression.type", STRING, "producer", one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    ),
    ConfigKey("compression.zstd.level", INT, 3, between(-131_072, 22)),
    ConfigKey("delete.retention.ms", LONG, DAY_MS, at_least(0)),
    ConfigKey("file.delete.delay.ms", LONG, MINUTE_MS, at_least(0)),
    ConfigKey("flush.messages", LONG, LONG_MAX, at_least(1)),
    ConfigKey("flush.ms", LONG, LONG_MAX, at_least(0)),
    ConfigKey("follower.replication.throttled.replicas", LIST, (), THROTTLED_REPLICAS),
    ConfigKey("index.interval.bytes", INT, 4 * KIB, at_least(0)),
    ConfigKey("leader.replication.throttled.replicas", LIST, (), THROTTLED_REPLICAS),
    ConfigKey("local.retention.bytes", LONG, -2, at_least(-2)),
    ConfigKey("local.retention.ms", LONG, -2, at_least(-2)),
    ConfigKey("max.compaction.lag.ms", LONG, LONG_MAX, at_least(1)),
    ConfigKey("max.message.bytes", INT, MIB + 12, at_least(0)),
    ConfigKey("message.timestamp.after.max.ms", LONG, HOUR_MS, at_least(0)),
    ConfigKey("message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0)),
    ConfigKey("message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime")),
    ConfigKey("min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1)),
    ConfigKey("min.compaction.lag.ms", LONG, 0, at_least(0)),
    ConfigKey("min.insync.replicas", INT, 1, at_least(1)),
    ConfigKey("preallocate", BOOLEAN, False),
    ConfigKey("remote.log.copy.disable", BOOLEAN, False),
    ConfigKey("remote.log.delete.on.disable", BOOLEAN, False),
    ConfigKey("remote.storage.enable", BOOLEAN, False),
    ConfigKey("retention.bytes", LONG, -1),
    ConfigKey("retention.ms", LONG, 7 * DAY_MS, at_least(-1)),
    ConfigKey("segment.bytes", INT, GIB, at_least(MIB)),
    ConfigKey("segment.index.bytes", INT, 10 * MIB, at_least(4)),
    ConfigKey("segment.jitter.ms", LONG, 0, at_least(0)),
    ConfigKey("segment.ms", LONG, 7 * DAY_MS, at_least(1)),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False),
    ConfigKey("internal.segment.bytes", INT, None, at_least(1), internal=True),
)

BROKER_SYNONYMS: dict[str, tuple[str, ...]] = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.type": ("compression.type",),
    "compression.zstd.level": ("compression.zstd.level",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "local.retention.bytes": ("log.local.retention.bytes",),
    "local.retention.ms": ("log.local.retention.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "preallocate": ("log.preallocate",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}
"""The broker settings that a topic setting falls back to; the first one that is set counts."""

UNIT_MS = {"minutes": MINUTE_MS, "hours": HOUR_MS}
"""The unit of a broker setting in milliseconds, by the end of its name; all others have the topic setting's unit."""
