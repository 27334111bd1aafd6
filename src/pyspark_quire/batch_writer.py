"""`df.write.format("quire")`: every row at least once; inside a stream's `foreachBatch`, exactly once.

A task that fails fails the job, and what it had written by then stays written, unless it was exactly once.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_quire.errors import QuireError
from pyspark_quire.exactly_once import TaskPlan
from pyspark_quire.mark_keeper import marker_topic
from pyspark_quire.marks import SinkName
from pyspark_quire.options import ALLOW_MISSING_MARKER, EXACTLY_ONCE, SERVERS, SINK, TOPIC, Options
from pyspark_quire.sink_columns import check_columns
from pyspark_quire.sink_driver import TaskReport, finish
from pyspark_quire.sink_task import write_rows, write_rows_once
from pyspark_quire.spark_process import SentToTasks
from pyspark_quire.stream_task import StreamTask, current_stream_task


class BatchWriter(SentToTasks, DataSourceArrowWriter):
    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise QuireError('a topic can only be added to: write with mode("append")')
        options.required(SERVERS)
        check_columns(schema, options[TOPIC])
        if options[EXACTLY_ONCE]:
            marker_topic(options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        stream = current_stream_task()
        if self._options[EXACTLY_ONCE] and stream is None:
            raise QuireError(
                "exactlyOnce is for the batches of a stream, which have a number: write inside foreachBatch, or leave "
                "the option out"
            )
        once = self._options[EXACTLY_ONCE]
        if stream is None or once is False:
            return TaskReport(-1, write_rows(self._options, iterator))
        return write_stream_task(self._options, stream, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        finish(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: each task has ended what it had open, and what is committed is found by the next attempt."""


def write_stream_task(options: Options, stream: StreamTask, batches: Iterator[pa.RecordBatch]) -> TaskReport:
    """A task of a stream's batch, exactly once."""
    sink = SinkName(stream.query_id, options[SINK] or marker_topic(options))
    plan = TaskPlan(sink, stream.batch_id, stream.task, options[ALLOW_MISSING_MARKER])
    mark = write_rows_once(options, plan, batches)
    return TaskReport(stream.task, mark.rows, sink, stream.batch_id)
