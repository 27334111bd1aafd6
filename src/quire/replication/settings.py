"""The settings of a topic that decide what a producer may append and how it is kept."""

from dataclasses import dataclass

from quire.protocol.records import Compression


@dataclass(slots=True, frozen=True)
class PartitionSettings:
    max_message_bytes: int = 1_048_588
    min_insync_replicas: int = 1
    segment_bytes: int = 1 << 30
    compacted: bool = False
    log_append_time: bool = False
    timestamp_before_max_ms: int = 2**63 - 1
    timestamp_after_max_ms: int = 3_600_000
    compression: Compression | None = None
    """What batches are stored with; None keeps the producer's choice."""
    compression_level: int | None = None

    def rewrites(self, produced: Compression) -> bool:
        """Whether a batch cannot be kept as it came."""
        return self.log_append_time or self.target_compression(produced) != produced

    def target_compression(self, produced: Compression) -> Compression:
        return produced if self.compression is None else self.compression
