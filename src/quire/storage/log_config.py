"""The settings of one topic that its log needs, under Kafka's names and with its defaults.

A config is a value: a changed topic setting gives the log a new one through `Log.config`.
"""

from typing import NamedTuple

NEVER = (1 << 63) - 1


class LogConfig(NamedTuple):
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1_048_588
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    delete: bool = True
    """Whether cleanup.policy has `delete`: then retention deletes whole segments."""
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    compact: bool = False
    """Whether cleanup.policy has `compact`: then gaps between offsets are not damage."""
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    delete_retention_ms: int = 24 * 3600 * 1000
