"""`df.write.format("quire")`: every row at least once; inside a stream's `foreachBatch`, exactly once.

A task that fails also fails the job. What it has written until then stays, unless the write is exactly once.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_quire.errors import QuireError
from pyspark_quire.exactly_once import TaskPlan
from pyspark_quire.marks import SinkName
from pyspark_quire.one_sentence import one_sentence
from pyspark_quire.options import ALLOW_MISSING_MARKER, EXACTLY_ONCE, SERVERS, SINK, TOPIC, Options
from pyspark_quire.sink_columns import check_columns
from pyspark_quire.sink_driver import TaskReport, finish
from pyspark_quire.sink_task import write_rows, write_rows_once
from pyspark_quire.spark_process import SentToTasks
from pyspark_quire.stream_task import StreamTask, current_stream_task

ROWS = "rows"
"""The name of a stream's only sink if the rows have a column for the topic and nothing names the sink."""


class BatchWriter(SentToTasks, DataSourceArrowWriter):
    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise QuireError('a topic can only be added to: write with mode("append")')
        options.required(SERVERS)
        check_columns(schema, options[TOPIC])
        self._options = options

    @one_sentence()
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
        if self._options[SINK] is None and self._options[TOPIC] is None:
            raise QuireError(
                "rows that name their topic themselves are written exactly once in foreachBatch only if option sink "
                "gives this write a name, which no other write of the batch has; or give option exactlyOnce false"
            )
        return write_stream_task(self._options, stream, iterator)

    @one_sentence()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        finish(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: tasks have ended their transactions, and the next attempt finds what is committed."""


def write_stream_task(options: Options, stream: StreamTask, batches: Iterator[pa.RecordBatch]) -> TaskReport:
    """A task of a stream's batch, exactly once."""
    sink = SinkName(stream.query_id, options[SINK] or options[TOPIC] or ROWS)
    plan = TaskPlan(sink, stream.batch_id, stream.task, options[ALLOW_MISSING_MARKER])
    mark = write_rows_once(options, plan, batches)
    return TaskReport(stream.task, mark.rows, sink, stream.batch_id)
