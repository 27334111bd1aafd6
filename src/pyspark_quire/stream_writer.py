"""`df.writeStream.format("quire")`: writes the rows of every micro-batch exactly once (see `exactly_once`).

With the option exactlyOnce=false it writes at least once: a repeated batch is written again.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_quire.batch_writer import write_stream_task
from pyspark_quire.errors import QuireError
from pyspark_quire.one_sentence import one_sentence
from pyspark_quire.options import EXACTLY_ONCE, SERVERS, TOPIC, Options
from pyspark_quire.sink_columns import check_columns
from pyspark_quire.sink_driver import TaskReport, finish
from pyspark_quire.sink_task import write_rows
from pyspark_quire.spark_process import SentToTasks
from pyspark_quire.stream_task import BATCH_ID, QUERY_ID, current_stream_task


class StreamWriter(SentToTasks, DataSourceStreamArrowWriter):
    def __init__(self, options: Options, schema: StructType) -> None:
        options.required(SERVERS)
        check_columns(schema, options[TOPIC])
        self._options = options
        self._once = options[EXACTLY_ONCE] is not False

    @one_sentence()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if not self._once:
            return TaskReport(-1, write_rows(self._options, iterator))
        stream = current_stream_task()
        if stream is None:
            raise QuireError(
                f"this version of Spark does not set {QUERY_ID} and {BATCH_ID} in its tasks, without which "
                "nothing can be written exactly once; give option exactlyOnce false to write at least once"
            )
        return write_stream_task(self._options, stream, iterator)

    @one_sentence()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        finish(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to do: tasks have ended their transactions, and the next attempt finds what is committed."""
