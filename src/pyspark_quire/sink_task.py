"""One task of a sink: rows into the log, at least once (`write_rows`) or exactly once (`write_rows_once`)."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from pyspark_quire.connect import borrow
from pyspark_quire.errors import QuireError
from pyspark_quire.exactly_once import Commit, Fence, Mark, Marks, ReadMarks, Step, TaskPlan, Write, write_task
from pyspark_quire.mark_keeper import MarkKeeper
from pyspark_quire.marks import TaskMark
from pyspark_quire.options import TOPIC, TRANSACTION_TIMEOUT_MS, Options
from pyspark_quire.row_producer import RowProducer, producer_config
from pyspark_quire.rows import Rows, rows_by_topic
from quire.client.errors import ClientError
from quire.client.producer import Producer
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError

NEAR = 0.8
"""The part of transaction.timeout.ms after which a task gives up, before the cluster aborts its transaction."""
_ABORT_MS = 5000.0


def write_rows(options: Options, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes every row with an idempotent producer; returns their number. A repeated task writes them again."""
    count = 0
    with borrow(options) as client:
        producer = Producer(client.cluster, producer_config(options))
        rows_out = RowProducer(client, producer, options)
        try:
            for rows in _rows(options, batches):
                rows_out.add(rows)
                count += rows.count
            rows_out.flush()
        except (ApiError, ClientError) as error:
            raise QuireError(f"rows could not be written: {error}") from error
        finally:
            producer.close()
    return count


def write_rows_once(options: Options, plan: TaskPlan, batches: Iterable[pa.RecordBatch]) -> TaskMark:
    """Writes the rows of a stream's task, or finds that an earlier attempt has."""
    with borrow(options) as client:
        performer = _Performer(client, options, plan)
        steps = write_task(plan, _rows(options, batches))
        found: object = None
        try:
            while True:
                found = performer.perform(steps.send(found))
        except StopIteration as end:
            mark = end.value
            assert isinstance(mark, TaskMark)
            return mark
        except (ApiError, ClientError) as error:
            performer.abort()
            raise QuireError(f"{plan} could not be written: {error}") from error
        except BaseException:
            performer.abort()
            raise
        finally:
            performer.close()


def _rows(options: Options, batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
    for batch in batches:
        if batch.num_rows:
            yield from rows_by_topic(batch, options[TOPIC])


class _Performer:
    """Executes the steps of `write_task` on a real cluster."""

    def __init__(self, client: BlockingClient, options: Options, plan: TaskPlan) -> None:
        self._client = client
        self._plan = plan
        self._id = plan.sink.task(plan.task)
        self._producer = Producer(client.cluster, producer_config(options, self._id))
        self._rows = RowProducer(client, self._producer, options)
        self._keeper = MarkKeeper(client, options, plan.sink)
        self._timeout_ms = options[TRANSACTION_TIMEOUT_MS]
        self._began_ms: float | None = None

    def perform(self, step: Step) -> Marks | None:
        match step:
            case Fence():
                self._keeper.prepare()
                self._client.run(self._producer.init_transactions())
            case ReadMarks(tasks):
                marks = self._keeper.read(tasks)
                if marks.batch is None and not marks.tasks:
                    self._keeper.check_empty()
                return marks
            case Write(chunk):
                self._in_time()
                self._rows.add(chunk)
            case Mark(mark):
                self._in_time()
                self._rows.finish()
                self._client.run(
                    self._producer.send_offsets(self._id, {self._keeper.topic_partition: mark.to_offset()})
                )
            case Commit():
                self._client.loop.run_until(self._producer.flush())
                self._rows.check()
                self._in_time()
                self._client.run(self._producer.commit())
                self._began_ms = None
            case _:
                raise AssertionError(step)
        return None

    def abort(self) -> None:
        """Best effort: a transaction that stays open ends when the task, or its successor, takes over the id."""
        if self._began_ms is not None:
            try:
                self._client.run(self._producer.abort(), _ABORT_MS)
            except (ApiError, ClientError):
                return

    def close(self) -> None:
        self._producer.close()

    def _in_time(self) -> None:
        """Begins the transaction at the first row, or at the mark if there are no rows; then watches its age."""
        now_ms = self._client.loop.monotonic_ms()
        if self._began_ms is None:
            self._began_ms = now_ms
            self._producer.begin()
        if now_ms - self._began_ms > NEAR * self._timeout_ms:
            raise QuireError(
                f"the transaction of {self._plan} was open for {(now_ms - self._began_ms) / 1000:.0f} s, and after "
                f"{self._timeout_ms / 1000:g} s the cluster ends it: raise kafka.transaction.timeout.ms, or use "
                "smaller batches, as with maxOffsetsPerTrigger"
            )
