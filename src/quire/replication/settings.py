"""The settings of a topic that decide what a producer may append, and how it is stored."""

from typing import NamedTuple

from quire.protocol.records import Compression

BATCH_BYTES_MAX = 500 * 1024 * 1024
"""Of any topic, because its followers could not copy larger batches: a node reads no response of more than 512 MiB."""


class PartitionSettings(NamedTuple):
    max_message_bytes: int = 1_048_588
    min_insync_replicas: int = 1
    segment_bytes: int = 1 << 30
    compacted: bool = False
    deletable: bool = True
    """Whether cleanup.policy has `delete`."""
    log_append_time: bool = False
    timestamp_before_max_ms: int = 2**63 - 1
    """How far a record's own timestamp may be in the past; unlimited with LogAppendTime."""
    timestamp_after_max_ms: int = 3_600_000
    compression: Compression | None = None
    """The codec that batches are stored with; None keeps the producer's."""
    compression_level: int | None = None
