"""The node's side of log compaction: which of its logs may be cleaned, how far, and with what.

What is done about them is `quire.storage.cleaning`'s.
"""

from collections.abc import Callable, Iterator

from quire.config.broker_config import BrokerConfig
from quire.node.partitions import Partitions
from quire.storage.cleaning.cleaner import Candidate, Settings

_BUFFER_MIN_BYTES = 1 << 20
"""Smaller pieces would cost more switching between threads than reading and writing."""


def candidates(partitions: Partitions) -> Callable[[], Iterator[Candidate]]:
    """All compacted logs. Up to its last stable offset nothing in one can be taken back or is undecided."""

    def all_compacted() -> Iterator[Candidate]:
        for partition in partitions:
            if partition.log.config.compact:
                key = (partition.topic, partition.index)
                yield Candidate(partitions.directory_of(partition), key, partition.log, partition.last_stable_offset)

    return all_compacted


def settings(config: BrokerConfig) -> Callable[[], Settings]:
    """As they are each time."""

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
