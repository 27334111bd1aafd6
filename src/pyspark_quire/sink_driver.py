"""The driver's part of a sink that writes exactly once, when all tasks of a batch have reported that they are done."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage

from pyspark_quire.connect import borrow
from pyspark_quire.errors import QuireError
from pyspark_quire.exactly_once import Fence, FindTasks, Known, LeaveBatchMark, Marks, ReadMarks, Step, finish_batch
from pyspark_quire.mark_keeper import MarkKeeper
from pyspark_quire.marks import SinkName
from pyspark_quire.options import Options
from quire.client.errors import ClientError
from quire.protocol.errors import ApiError


@dataclass(slots=True, frozen=True)
class TaskReport(WriterCommitMessage):
    """The report of a task to the driver; `sink` and `batch_id` are set if it wrote exactly once."""

    task: int
    rows: int
    sink: SinkName | None = None
    batch_id: int = -1


def finish(options: Options, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Ends a batch whose tasks have all written exactly once; does nothing if none did."""
    reports = [message for message in messages if isinstance(message, TaskReport) and message.sink is not None]
    if not reports:
        return
    sink, batch_id = reports[0].sink, reports[0].batch_id
    assert sink is not None
    if len(reports) != len(messages) or any((report.sink, report.batch_id) != (sink, batch_id) for report in reports):
        raise QuireError(f"only {len(reports)} of {len(messages)} tasks of batch {batch_id} of {sink} were written")
    with borrow(options) as client:
        keeper = MarkKeeper(client, options, sink)
        try:
            _take_steps(keeper, finish_batch(sink, batch_id, len(reports)))
        except (ApiError, ClientError) as error:
            raise QuireError(f"batch {batch_id} of {sink} could not be finished: {error}") from error


def _take_steps(keeper: MarkKeeper, steps: Generator[Step, Any, None]) -> None:
    step = next(steps, None)
    while step is not None:
        found: Marks | Known | None = None
        match step:
            case ReadMarks(tasks):
                found = keeper.read(tasks)
            case LeaveBatchMark(mark):
                keeper.leave(mark)
            case FindTasks():
                found = keeper.find_tasks()
            case Fence(task):
                keeper.fence(task)
            case _:
                raise AssertionError(step)
        try:
            step = steps.send(found)
        except StopIteration:
            return
