"""Tells the log cleaner which logs it may compact, up to which offset, and with which settings.

`quire.storage.cleaning` has the cleaner.
"""

from collections.abc import Callable, Iterator

from quire.config.broker_config import BrokerConfig
from quire.node.partitions import Partitions
from quire.storage.cleaning.cleaner import Candidate, Settings
from quire.storage.scanning.batch_scan import DamagedBatchError

_BUFFER_MIN_BYTES = 1 << 20
"""With smaller buffers, switching between threads would cost more than reading and writing."""


def candidates(partitions: Partitions) -> Callable[[], Iterator[Candidate]]:
    """All compacted logs, each up to its last stable offset: before it, no record can be truncated or aborted."""

    def all_compacted() -> Iterator[Candidate]:
        for partition in partitions:
            if partition.log.config.compact:
                key = (partition.topic, partition.index)
                yield Candidate(partitions.directory_of(partition), key, partition.log, partition.last_stable_offset)

    return all_compacted


def report_damage(partitions: Partitions) -> Callable[[Candidate, DamagedBatchError], None]:
    """What the cleaner found is repaired like any other damage."""

    def report(candidate: Candidate, damage: DamagedBatchError) -> None:
        for partition in partitions.of_topic(candidate.key[0]):
            if partition.log is candidate.log:
                partition.damage_error(damage)

    return report


def settings(config: BrokerConfig) -> Callable[[], Settings]:
    """Returns a function that reads the current settings."""

    def current() -> Settings:
        threads = config.get_int("log.cleaner.threads")
        return Settings(
            enabled=config.get_bool("log.cleaner.enable"),
            threads=threads,
            backoff_ms=config.get_int("log.cleaner.backoff.ms"),
            table_bytes=config.get_int("log.cleaner.dedupe.buffer.size"),
            table_load_factor=config.get_float("log.cleaner.io.buffer.load.factor"),
            buffer_bytes=max(config.get_int("log.cleaner.io.buffer.size") // 2 // max(threads, 1), _BUFFER_MIN_BYTES),
            bytes_per_second=config.get_float("log.cleaner.io.max.bytes.per.second"),
            decompressed_bytes=config.get_int("quire.max.decompressed.bytes"),
        )

    return current
