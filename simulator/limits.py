"""How much the node's code takes at a time: limits that only a large log or a busy node reaches, made small for a run.

A read of a megabyte covers a whole log in the simulator, so the boundary between two reads would never be tested. So
each seed makes some of these limits small: settings where they exist, and module constants where they do not. Odd sizes
are best: they end anywhere, even within a header.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

from simulator.random import SimRandom

HEADER_BYTES = 61
"""Code that must find a batch header in a piece needs pieces of at least this size."""


class Limit(NamedTuple):
    """A module constant that the code reads at each use, and the range of its small values."""

    module: str
    name: str
    low: int
    high: int


LIMITS = (
    Limit("quire.client.connection", "ROOM_BYTES", 4, 300),
    Limit("quire.controller.command_runner", "_TURN_PORTIONS", 1, 2),
    Limit("quire.storage.directory.log_loading", "_LOGS_PER_JOB", 1, 3),
    Limit("quire.controller.producer_ids", "BLOCK_SIZE", 1, 3),
    Limit("quire.coordinators.group.offsets.expiry", "MAX_CHECKED", 1, 5),
    Limit("quire.coordinators.group.offsets.tombstones", "MAX_RECORDS", 1, 5),
    Limit("quire.coordinators.group.offsets.tombstones", "MAX_BYTES", 1, 500),
    Limit("quire.coordinators.runtime.loader", "REPLAYED_AT_ONCE", 1, 10),
    Limit("quire.coordinators.transaction.marker_sender", "MOST_MARKERS", 1, 3),
    Limit("quire.coordinators.transaction.time_limits", "PORTION_BYTES", 1, 500),
    Limit("quire.coordinators.transaction.time_limits", "PORTION_PARTITIONS", 1, 3),
    Limit("quire.network.connection", "_TURN_REQUESTS", 1, 3),
    Limit("quire.network.connection", "_WRITE_TOGETHER_BYTES", 1, 500),
    Limit("quire.network.framing", "_BEYOND_BYTES", 4, 100),
    Limit("quire.node.batch_checks", "AT_ONCE_BYTES", 0, 3000),
    Limit("quire.node.compaction", "_BUFFER_MIN_BYTES", 1, 2000),
    Limit("quire.node.api.fetch", "FEW_PARTITIONS", 0, 1),
    Limit("quire.node.dispatch", "LARGE_BYTES", 1, 200),
    Limit("quire.node.offset_portions", "PORTION", 1, 2),
    Limit("quire.node.partitions.opening", "LOGS_PER_TURN", 1, 2),
    Limit("quire.node.retention", "_LOOKS_PER_TURN", 1, 2),
    Limit("quire.node.slices", "FIRST_STEPS", 1, 2),
    Limit("quire.node.slices", "STEPS_PER_SLICE", 1, 3),
    Limit("quire.node.slices", "UNDER_WAY_MAX", 1, 2),
    Limit("quire.protocol.records.compression", "_GZIP_FEED_BYTES", 1, 100),
    Limit("quire.protocol.records.lz4_frames", "_STEP_BYTES", 1, 100),
    Limit("quire.protocol.records.zstd_frames", "STEP_BYTES", 1, 1000),
    Limit("quire.raft.log_store", "READ_BYTES", 1, 1000),
    Limit("quire.raft.snapshot_file", "HEADER_READ_BYTES", HEADER_BYTES, 100),
    Limit("quire.raft.snapshot_file", "RECORDS_PER_BATCH", 1, 5),
    Limit("quire.storage.scanning.batch_scan", "_CHECKED_CHUNK", HEADER_BYTES, 2000),
    Limit("quire.storage.scanning.batch_scan", "_HEADERS_CHUNK", HEADER_BYTES, 500),
    Limit("quire.storage.cleaning.cleaner", "STEP_BYTES", 1, 2000),
    Limit("quire.storage.scanning.damage", "_CHUNK", 1, 500),
    Limit("quire.storage.indexes.index_file", "CACHE_BYTES", 0, 500),
    Limit("quire.storage.scanning.range_check", "AHEAD_BYTES", 1, 2000),
    Limit("quire.storage.deleting.retention", "AT_ONCE_MAX", 1, 2),
    Limit("quire.storage.scanning.segment_scan", "_CHUNK", 1, 2000),
    Limit("quire.storage.time_lookup.time_search", "_CHUNK", 1, 500),
    Limit("quire.storage.time_lookup.time_search", "_FIRST_CHUNK", 1, 500),
    Limit("quire.storage.time_lookup.timestamp_lookup", "AT_ONCE_BYTES", 1, 500),
    Limit("quire.storage.verify.log", "_STEP_BYTES", 1, 2000),
    Limit("quire.storage.producers.producer_snapshot", "AT_ONCE_MAX", 0, 3),
    Limit("quire.storage.segment.lookup", "REBUILT_AT_ONCE_BYTES", 0, 1000),
)

Small = dict[tuple[str, str], int]
"""The small value of each changed limit, by module and name."""


def small_limits(random: SimRandom) -> Small:
    """About half of the limits, chosen at random."""
    return {
        (each.module, each.name): each.low + random.below(each.high - each.low + 1)
        for each in LIMITS
        if random.chance(0.5)
    }


def small_settings(random: SimRandom) -> dict[str, str]:
    """Limits that are settings of a node."""
    drawn = {
        "offsets.load.buffer.size": 1 + random.below(2000),
        "transaction.state.log.load.buffer.size": 1 + random.below(2000),
        "fetch.max.bytes": 1024 + random.below(5000),
        "log.cleaner.io.buffer.size": random.below(4000),
        "log.cleaner.dedupe.buffer.size": (2 << 20) + 1,
        "log.cleaner.io.buffer.load.factor": 0.0001,
        "log.index.interval.bytes": random.below(500),
        "internal.metadata.log.segment.bytes": 3000 + random.below(3000),
    }
    return {name: str(value) for name, value in drawn.items() if random.chance(0.5)}


@contextmanager
def applied(limits: Small) -> Iterator[None]:
    """Applies the limits within the block."""
    before = {(module, name): getattr(import_module(module), name) for module, name in limits}
    _set(limits)
    try:
        yield
    finally:
        _set(before)


def _set(limits: Small) -> None:
    for (module, name), value in limits.items():
        setattr(import_module(module), name, value)
