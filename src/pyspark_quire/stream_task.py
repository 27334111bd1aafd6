"""The query and batch of a task, from the local properties of a stream's jobs.

The same properties exist inside `foreachBatch`, where the batch writer writes a batch. They are not part of Spark's
documented interface, so without them nothing is assumed.
"""

from typing import NamedTuple

from pyspark import TaskContext

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"


class StreamTask(NamedTuple):
    query_id: str
    batch_id: int
    task: int


def current_stream_task() -> StreamTask | None:
    """None outside of a stream, or if Spark does not set the properties."""
    context = TaskContext.get()
    if context is None:
        return None
    query_id, batch_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if not query_id or batch_id is None or not batch_id.isdigit():
        return None
    return StreamTask(query_id, int(batch_id), context.partitionId())
