"""The settings of one topic that its log needs, under Kafka's names and with its defaults.

A config is a value: a changed topic setting gives the log a new one through `Log.config`.
"""

from typing import NamedTuple


class LogConfig(NamedTuple):
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    file_delete_delay_ms: int = 60_000
    compact: bool = False
    """Whether cleanup.policy has `compact`: then offsets may have gaps, and a gap is no sign of damage."""
