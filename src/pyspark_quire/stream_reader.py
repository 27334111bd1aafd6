"""`spark.readStream.format("quire")`: where a stream starts, how far it may go next, and what each task reads.

Spark keeps one reader in a process beside the driver. For each micro-batch it calls `latestOffset(start)`, when
everything up to `start` is committed, then `partitions(start, end)`. After a crash it passes the `start` and `end` of
its checkpoint, so nothing here may depend on the state of an earlier process. Spark may never call `stop`.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_quire.advance import available, capped, count_new, limited, moved, with_begins
from pyspark_quire.bounds import find_extent, find_extent_from, find_starts, starting_goals
from pyspark_quire.connect import Connection
from pyspark_quire.errors import QuireError
from pyspark_quire.group_progress import GroupProgress
from pyspark_quire.loss import LossPolicy
from pyspark_quire.one_sentence import one_sentence
from pyspark_quire.options import (
    FAIL_ON_DATA_LOSS,
    MAX_OFFSETS_PER_TRIGGER,
    MAX_RECORDS_PER_PARTITION,
    MAX_TRIGGER_DELAY_MS,
    MIN_OFFSETS_PER_TRIGGER,
    MIN_PARTITIONS,
    Options,
)
from pyspark_quire.positions import Position, Positions, from_json, ranges_between, to_json, without_begins
from pyspark_quire.reading import Split, read_split
from pyspark_quire.spark_process import SentToTasks
from pyspark_quire.splits import plan_tasks
from pyspark_quire.subscription import check_subscription, describe, find_partitions, foreign
from quire.client.cluster import Cluster
from quire.client.offsets import LATEST
from quire.steps import Steps


class StreamReader(SentToTasks, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options, schema: StructType) -> None:
        check_subscription(options)
        self._options = options
        self._schema = schema
        self._connection = Connection(options)
        self._progress = GroupProgress(options)
        self._loss = LossPolicy(options[FAIL_ON_DATA_LOSS])
        self._initial: Positions | None = None
        self._committed: Positions | None = None
        self._latest: Positions | None = None
        self._target: Positions | None = None
        self._waiting_since_ms: float | None = None

    # --- Where it starts

    @one_sentence()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Spark calls this until the first micro-batch is done, even after a crash: the result stays the same."""
        if self._initial is None:
            self._initial = self._connection.run(lambda cluster: find_initial(cluster, self._options, self._progress))
        return to_json(self._initial)

    # --- How far it may go

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most, least = self._options[MAX_OFFSETS_PER_TRIGGER], self._options[MIN_OFFSETS_PER_TRIGGER]
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    @one_sentence()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Prepares a stream that stops by itself, at the current end."""
        self._target = self._connection.run(lambda cluster: _find_ends(cluster, self._options))

    @one_sentence()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        before = from_json(start)
        self._check(before)
        end = self._connection.run(lambda cluster: self._advance(cluster, before))
        if self._target is not None:
            end = capped(before, end, self._target)
        elif not isinstance(limit, ReadAllAvailable) and self._too_few(count_new(before, end)):
            end = before
        if isinstance(limit, ReadMaxRows):
            end = limited(before, end, limit.max_rows)
        if before == self._initial:
            # Spark stores no start for the first micro-batch, so its end says where it begins.
            return to_json(with_begins(before, end))
        return to_json(end) if moved(before, end) else start

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The end at the last request, for the progress that Spark reports."""
        return None if self._latest is None else to_json(self._latest)

    def _advance(self, cluster: Cluster, before: Positions) -> Steps[Positions]:
        yield from self._commit(cluster, before)
        known = {partition: position.topic_id for partition, position in before.items() if not position.gone}
        gone = {partition.topic for partition, position in before.items() if position.gone}
        partitions = yield from find_partitions(cluster, self._options, known, gone)
        reached = {partition: position.offset for partition, position in before.items()}
        extent = yield from find_extent_from(cluster, self._options, partitions, reached)
        end = available(before, partitions, extent, self._loss)
        self._latest = without_begins(end)
        return end

    def _commit(self, cluster: Cluster, done: Positions) -> Steps[None]:
        """Everything up to this position is committed; Spark reports that reliably only here."""
        if done == self._initial:
            return
        done = without_begins(done)
        if done == self._committed:
            return
        there = {partition: position for partition, position in done.items() if not position.gone}
        yield from self._progress.commit(cluster, there)
        self._committed = done

    def _too_few(self, count: int) -> bool:
        """Whether to wait for more, as minOffsetsPerTrigger asks, but not for longer than maxTriggerDelay."""
        least = self._options[MIN_OFFSETS_PER_TRIGGER]
        now_ms = self._connection.monotonic_ms()
        if least is None or count >= least:
            self._waiting_since_ms = None
            return False
        if self._waiting_since_ms is None:
            self._waiting_since_ms = now_ms
        if now_ms - self._waiting_since_ms < self._options[MAX_TRIGGER_DELAY_MS]:
            return True
        self._waiting_since_ms = None
        return False

    # --- What is read

    @one_sentence()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        before, after = from_json(start), from_json(end)
        self._check(after)
        options = self._options
        ranges = ranges_between(before, after)
        tasks = plan_tasks(ranges, options[MIN_PARTITIONS], options[MAX_RECORDS_PER_PARTITION])
        return [Split(parts) for parts in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            yield from read_split(self._options, self._schema, partition)

    def stop(self) -> None:
        self._connection.close()

    def _check(self, positions: Positions) -> None:
        """Refuses the checkpoint of another query, whose offsets mean nothing here."""
        there = [partition for partition, position in positions.items() if not position.gone]
        strange = foreign(self._options, there)
        if strange and (self._loss.fail or len(strange) == len(there)):
            names = ", ".join(sorted({partition.topic for partition in strange}))
            raise QuireError(
                f"the checkpoint has offsets of {names}, which this stream does not read ({describe(self._options)}); "
                "give every stream a checkpoint of its own"
            )


def find_initial(cluster: Cluster, options: Options, progress: GroupProgress) -> Steps[Positions]:
    """Where a new stream starts according to the options; `latest` and timestamps are resolved only once."""
    partitions = yield from find_partitions(cluster, options)
    goals = starting_goals(options, partitions, LATEST)
    passing = {
        partition: goal for partition, goal in goals.items() if goal.offset == LATEST or goal.timestamp_ms is not None
    }
    if passing:
        remembered = yield from progress.remembered(
            cluster, {partition: partitions[partition] for partition in passing}
        )
        if remembered:
            # Partitions without a mark are new, and are read from their beginning.
            partitions = {partition: topic_id for partition, topic_id in partitions.items() if partition not in passing}
            goals = {partition: goals[partition] for partition in partitions}
    else:
        remembered = {}
    extent = yield from find_extent(cluster, options, partitions)
    starts = yield from find_starts(cluster, options, goals, extent)
    initial = remembered | {
        partition: Position(starts[partition], topic_id) for partition, topic_id in partitions.items()
    }
    yield from progress.remember(cluster, initial)
    return dict(sorted(initial.items()))


def _find_ends(cluster: Cluster, options: Options) -> Steps[Positions]:
    partitions = yield from find_partitions(cluster, options, lenient=True)
    extent = yield from find_extent(cluster, options, partitions)
    return {partition: Position(extent[partition].latest, topic_id) for partition, topic_id in partitions.items()}
