"""Converts a topic's configuration into the values that its partitions and logs work with."""

from quire.config.topic_config import TopicConfig
from quire.protocol.records import Compression
from quire.replication.settings import BATCH_BYTES_MAX, PartitionSettings
from quire.storage import LogConfig

CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
NO_LIMIT = 2**63 - 1


def log_config(config: TopicConfig) -> LogConfig:
    return LogConfig(
        segment_bytes=config.segment_bytes,
        segment_ms=_segment_ms(config),
        segment_jitter_ms=config.get_int("segment.jitter.ms"),
        segment_index_bytes=config.get_int("segment.index.bytes"),
        index_interval_bytes=config.get_int("index.interval.bytes"),
        file_delete_delay_ms=config.get_int("file.delete.delay.ms"),
        max_message_bytes=config.get_int("max.message.bytes"),
        flush_messages=config.get_int("flush.messages"),
        flush_ms=config.get_int("flush.ms"),
        delete="delete" in config.get_list("cleanup.policy"),
        retention_ms=config.get_int("retention.ms"),
        retention_bytes=config.get_int("retention.bytes"),
        compact="compact" in config.get_list("cleanup.policy"),
        min_cleanable_dirty_ratio=config.get_float("min.cleanable.dirty.ratio"),
        min_compaction_lag_ms=config.get_int("min.compaction.lag.ms"),
        max_compaction_lag_ms=config.get_int("max.compaction.lag.ms"),
        delete_retention_ms=config.get_int("delete.retention.ms"),
    )


def _segment_ms(config: TopicConfig) -> int:
    """The age at which a segment is rolled. Only closed segments are compacted, so max.compaction.lag.ms limits it."""
    segment_ms = config.get_int("segment.ms")
    compact = "compact" in config.get_list("cleanup.policy")
    return min(segment_ms, config.get_int("max.compaction.lag.ms")) if compact else segment_ms


def partition_settings(config: TopicConfig) -> PartitionSettings:
    codec = config.get_str("compression.type")
    log_append_time = config.get_str("message.timestamp.type") == "LogAppendTime"
    return PartitionSettings(
        max_message_bytes=min(config.get_int("max.message.bytes"), BATCH_BYTES_MAX),
        min_insync_replicas=config.get_int("min.insync.replicas"),
        segment_bytes=config.segment_bytes,
        compacted="compact" in config.get_list("cleanup.policy"),
        deletable="delete" in config.get_list("cleanup.policy"),
        log_append_time=log_append_time,
        timestamp_before_max_ms=NO_LIMIT if log_append_time else config.get_int("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=NO_LIMIT if log_append_time else config.get_int("message.timestamp.after.max.ms"),
        compression=CODECS.get(codec),
        compression_level=compression_level(config, codec),
    )


def compression_level(config: TopicConfig, codec: str) -> int | None:
    """The level from the setting of this codec, or None for the codec's default."""
    if codec not in ("gzip", "lz4", "zstd"):
        return None
    level = config.get_int(f"compression.{codec}.level")
    return None if codec == "gzip" and level == -1 else level
