"""Where reading starts and ends: by offset, by time, or at either end of a partition, as the options say.

`starting_goals` and `ending_goals` read the options, without requests; `find_bounds` resolves them with requests to the
cluster. Timestamps take precedence over offsets, and one timestamp for all partitions over one for each, as in Spark's
Kafka source.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyspark_quire.errors import OptionError, QuireError
from pyspark_quire.options import (
    ENDING_BY_TIMESTAMP,
    ENDING_OFFSETS,
    ENDING_TIMESTAMP,
    ISOLATION_LEVEL,
    STARTING_BY_TIMESTAMP,
    STARTING_OFFSETS,
    STARTING_STRATEGY,
    STARTING_TIMESTAMP,
    Option,
    Options,
)
from quire.client.cluster import Cluster
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.steps import Steps


class Goal(NamedTuple):
    """An offset (EARLIEST and LATEST included), or the first record at or after a time."""

    offset: int | None = None
    timestamp_ms: int | None = None


class Bounds(NamedTuple):
    """The offsets of a partition that can be read now: from `earliest` up to `latest`, which is excluded."""

    earliest: int
    latest: int


Goals = dict[TopicPartition, Goal]


def starting_goals(options: Options, partitions: Iterable[TopicPartition], default: int) -> Goals:
    return _goals(options, partitions, STARTING_TIMESTAMP, STARTING_BY_TIMESTAMP, STARTING_OFFSETS, default)


def ending_goals(options: Options, partitions: Iterable[TopicPartition]) -> Goals:
    return _goals(options, partitions, ENDING_TIMESTAMP, ENDING_BY_TIMESTAMP, ENDING_OFFSETS, LATEST)


def check_batch_bounds(options: Options) -> None:
    """A batch that starts at the end, or ends at the beginning, is a mistake."""
    for option, wrong, word in ((STARTING_OFFSETS, LATEST, "latest"), (ENDING_OFFSETS, EARLIEST, "earliest")):
        value = options[option]
        if value == wrong or (isinstance(value, dict) and wrong in value.values()):
            raise OptionError(f"option {option.name} cannot be {word} for a batch: it would read nothing")


def _goals(
    options: Options,
    partitions: Iterable[TopicPartition],
    everywhere: Option[int | None],
    by_time: Option[dict[TopicPartition, int] | None],
    by_offset: Option[int | dict[TopicPartition, int] | None],
    default: int,
) -> Goals:
    timestamp_ms = options[everywhere]
    if timestamp_ms is not None:
        return {partition: Goal(timestamp_ms=timestamp_ms) for partition in partitions}
    times = options[by_time]
    if times is not None:
        _check_partitions(by_time.name, times, partitions)
        return {partition: Goal(timestamp_ms=times[partition]) for partition in partitions}
    offsets = options[by_offset]
    if isinstance(offsets, dict):
        _check_partitions(by_offset.name, offsets, partitions)
        return {partition: Goal(offset=offsets[partition]) for partition in partitions}
    return {partition: Goal(offset=default if offsets is None else offsets) for partition in partitions}


def _check_partitions(name: str, given: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]) -> None:
    there = dict.fromkeys(partitions)
    missing = [str(partition) for partition in there if partition not in given]
    unknown = [str(partition) for partition in given if partition not in there]
    if missing:
        raise OptionError(f"option {name} has no entry for {', '.join(missing)}; give every partition that is read")
    if unknown:
        raise OptionError(f"option {name} names {', '.join(unknown)}, which this job does not read")


def find_extent(
    cluster: Cluster, options: Options, partitions: Iterable[TopicPartition]
) -> Steps[dict[TopicPartition, Bounds]]:
    """The first and the last offset that can be read now; with read_committed the end is before open transactions."""
    return (yield from find_log(cluster, partitions, isolation_level=int(options[ISOLATION_LEVEL] == "read_committed")))


def find_log(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, isolation_level: int = 0
) -> Steps[dict[TopicPartition, Bounds]]:
    """The first offset and the end of each log, including open transactions."""
    wanted = list(partitions)
    latest = yield from list_offsets(cluster, dict.fromkeys(wanted, LATEST), isolation_level=isolation_level)
    earliest = yield from list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    # The beginning is requested second, and may have moved past the end.
    return {
        partition: Bounds(earliest[partition].offset, max(earliest[partition].offset, latest[partition].offset))
        for partition in wanted
    }


def find_extent_from(
    cluster: Cluster, options: Options, partitions: Iterable[TopicPartition], reached: Mapping[TopicPartition, int]
) -> Steps[dict[TopicPartition, Bounds]]:
    """The same for a reader at these offsets: if a transaction before them is open, nothing is new and nothing is lost.

    This happens if a stream changes to read_committed, or starts at given offsets.
    """
    extent = yield from find_extent(cluster, options, partitions)
    ahead = [partition for partition, bounds in extent.items() if reached.get(partition, 0) > bounds.latest]
    whole = (yield from find_log(cluster, ahead)) if ahead else {}
    return extent | {
        partition: Bounds(bounds.earliest, max(extent[partition].latest, min(reached[partition], bounds.latest)))
        for partition, bounds in whole.items()
    }


def find_starts(
    cluster: Cluster, options: Options, goals: Goals, extent: Mapping[TopicPartition, Bounds]
) -> Steps[dict[TopicPartition, int]]:
    """The offsets that the starting options mean now. Numbers are returned unchanged, even if they do not exist."""
    strict = options[STARTING_STRATEGY] == "error"
    return (yield from _find(cluster, goals, extent, STARTING_STRATEGY.name if strict else None))


def find_ends(
    cluster: Cluster, goals: Goals, extent: Mapping[TopicPartition, Bounds]
) -> Steps[dict[TopicPartition, int]]:
    """The offsets that the ending options mean now; if no record is as late as a timestamp, the end of the log."""
    return (yield from _find(cluster, goals, extent, None))


def _find(
    cluster: Cluster, goals: Goals, extent: Mapping[TopicPartition, Bounds], strategy: str | None
) -> Steps[dict[TopicPartition, int]]:
    times = {partition: goal.timestamp_ms for partition, goal in goals.items() if goal.timestamp_ms is not None}
    at_time = (yield from list_offsets(cluster, times)) if times else {}
    found: dict[TopicPartition, int] = {}
    for partition, goal in goals.items():
        bounds = extent[partition]
        if goal.offset is not None:
            found[partition] = {EARLIEST: bounds.earliest, LATEST: bounds.latest}.get(goal.offset, goal.offset)
            continue
        offset = at_time[partition].offset
        if offset < 0 and strategy is not None:
            raise QuireError(
                f"{partition} has no record at or after timestamp {goal.timestamp_ms}; "
                f"with {strategy}=latest it would be read from its end"
            )
        found[partition] = bounds.latest if offset < 0 else min(offset, bounds.latest)
    return found
