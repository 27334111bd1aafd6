"""`spark.read.format("quire")`: finds the offsets to read when Spark plans the query, and divides them into splits."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_quire.bounds import (
    Bounds,
    check_batch_bounds,
    ending_goals,
    find_ends,
    find_extent,
    find_log,
    find_starts,
    starting_goals,
)
from pyspark_quire.connect import connect
from pyspark_quire.errors import QuireError
from pyspark_quire.loss import LossPolicy
from pyspark_quire.one_sentence import one_sentence
from pyspark_quire.options import (
    FAIL_ON_DATA_LOSS,
    ISOLATION_LEVEL,
    MAX_RECORDS_PER_PARTITION,
    MIN_PARTITIONS,
    Options,
)
from pyspark_quire.reading import Split, read_split
from pyspark_quire.spark_process import SentToTasks
from pyspark_quire.splits import Range, plan_tasks
from pyspark_quire.subscription import check_subscription, describe, find_partitions
from quire.client.cluster import Cluster
from quire.client.offsets import EARLIEST, TopicPartition
from quire.steps import Steps


class BatchReader(SentToTasks, DataSourceReader):
    def __init__(self, options: Options, schema: StructType) -> None:
        check_subscription(options)
        check_batch_bounds(options)
        self._options = options
        self._schema = schema

    @one_sentence()
    def partitions(self) -> list[InputPartition]:
        options = self._options
        with connect(options) as client:
            ranges = client.run(plan_batch(client.cluster, options))
        tasks = plan_tasks(ranges, options[MIN_PARTITIONS], options[MAX_RECORDS_PER_PARTITION])
        return [Split(parts) for parts in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            yield from read_split(self._options, self._schema, partition)


def plan_batch(cluster: Cluster, options: Options) -> Steps[list[Range]]:
    """The offsets of every partition that the options select, checked against the existing ones."""
    partitions = yield from find_partitions(cluster, options)
    if not partitions:
        raise QuireError(f"no topic matches {describe(options)}")
    extent = yield from find_extent(cluster, options, partitions)
    starts = yield from find_starts(cluster, options, starting_goals(options, partitions, EARLIEST), extent)
    ends = yield from find_ends(cluster, ending_goals(options, partitions), extent)
    held_up = yield from _find_held_up(cluster, options, extent, starts, ends)
    loss = LossPolicy(options[FAIL_ON_DATA_LOSS])
    return [
        Range(
            partition,
            topic_id,
            *_checked(partition, starts[partition], ends[partition], extent[partition], partition in held_up, loss),
        )
        for partition, topic_id in partitions.items()
    ]


def _find_held_up(
    cluster: Cluster, options: Options, extent: Mapping[TopicPartition, Bounds], *wanted: Mapping[TopicPartition, int]
) -> Steps[list[TopicPartition]]:
    """The requested offset is beyond an open transaction: read_committed must not read it yet, but it is not lost."""
    if options[ISOLATION_LEVEL] != "read_committed":
        return []
    beyond = [
        partition
        for partition, bounds in extent.items()
        if any(offsets[partition] > bounds.latest for offsets in wanted)
    ]
    log = (yield from find_log(cluster, beyond)) if beyond else {}
    return [partition for partition in beyond if log[partition].latest > extent[partition].latest]


def _checked(
    partition: TopicPartition, start: int, end: int, bounds: Bounds, held_up: bool, loss: LossPolicy
) -> tuple[int, int]:
    if start > end and not (held_up and end == bounds.latest):
        raise QuireError(f"{partition} would be read from offset {start} to {end}: the start is after the end")
    if (furthest := max(start, end)) > bounds.latest:
        (loss.held_up if held_up else loss.beyond)(partition, furthest, bounds.latest)
        end = bounds.latest
    if start < bounds.earliest and start < end:
        loss.overtaken(partition, start, bounds.earliest)
        start = bounds.earliest
    return min(start, end), end
