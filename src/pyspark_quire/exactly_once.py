"""How a stream's batch is written once, whatever crashes: the steps of its tasks and of its driver, and nothing else.

A task (`write_task`)                                     The driver, when all tasks are done (`finish_batch`)
1. takes its transactional id, which fences earlier       1. leaves its mark: the batch, and how many tasks it had
   attempts and ends what they had open                   2. looks up every task of this sink there ever was
2. reads its own mark and the driver's                    3. fences those from the number of tasks on that have a
3. writes the rows and its new mark in one transaction       transaction open, so as not to wait for it
4. reads the driver's mark once more, then commits        4. reads the marks of all of those: none is of this batch

If a task's mark is of this batch already, an earlier attempt has written it: then the rows are only counted and hashed,
and must be the same. So when a batch ends well, tasks 0 to n - 1 have each committed exactly the rows they were given,
and no other task has committed any for this batch: every row is in the log once. If Spark splits a batch in another way
when it runs it again, some task finds other rows than it has written, or is not there any more while its mark is; both
fail the query, and go on failing it however often it is started.

A task that outlived its driver (a zombie) is fenced by the next attempt of the same task. One whose number the next
attempt does not use is stopped by the driver's mark: either it sees that mark before it commits, or it had its
mark in a transaction when the driver looked, who then fences it, or reads the mark once that is committed.

Both are generators: they yield what is to be done and get back what was found. `sink_task` and `sink_driver` do it with
a cluster, and the tests with a model that loses, delays and repeats every step.
"""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from pyspark_quire.errors import QuireError
from pyspark_quire.marks import DIGESTS, BatchMark, SinkName, TaskMark


class Chunk(Protocol):
    """Some of a task's rows."""

    @property
    def count(self) -> int: ...
    def digest(self) -> int: ...


C = TypeVar("C", bound=Chunk)


@dataclass(slots=True, frozen=True)
class Fence:
    """Take over the transactional id of a task, ending what is open under it."""

    task: int


@dataclass(slots=True, frozen=True)
class ReadMarks:
    """-> Marks: the driver's, and those of some tasks; none of them before the transaction it is in has ended."""

    tasks: tuple[int, ...] = ()


class Marks(NamedTuple):
    """What was found; tasks without a mark are left out."""

    tasks: Mapping[int, TaskMark]
    batch: BatchMark | None


@dataclass(slots=True, frozen=True)
class Write:
    """Put rows into the transaction, which the first of them opens."""

    chunk: Any


@dataclass(slots=True, frozen=True)
class Mark:
    """Put the task's mark into the transaction."""

    mark: TaskMark


@dataclass(slots=True, frozen=True)
class Commit:
    """Commit the transaction."""


@dataclass(slots=True, frozen=True)
class LeaveBatchMark:
    mark: BatchMark


@dataclass(slots=True, frozen=True)
class FindTasks:
    """-> Known: the tasks of this sink that a coordinator knows."""


class Known(NamedTuple):
    """Task numbers: all there ever were, and those that have a transaction open."""

    tasks: frozenset[int]
    open: frozenset[int]


Step = Fence | ReadMarks | Write | Mark | Commit | LeaveBatchMark | FindTasks


@dataclass(slots=True, frozen=True)
class TaskPlan:
    """Which task of which batch of which sink; `allow_missing_marker`: the user says that nothing is written yet."""

    sink: SinkName
    batch_id: int
    task: int
    allow_missing_marker: bool = False

    def __str__(self) -> str:
        return f"task {self.task} of batch {self.batch_id} of {self.sink}"


def write_task(plan: TaskPlan, chunks: Iterable[C]) -> Generator[Step, Any, TaskMark]:
    """Writes the rows unless they are written; raises QuireError, without committing, where neither would be right."""
    yield Fence(plan.task)
    before: Marks = yield ReadMarks((plan.task,))
    own = before.tasks.get(plan.task)
    writes = must_write(plan, own, before.batch)
    rows, digest = 0, 0
    for chunk in chunks:
        rows += chunk.count
        digest = (digest + chunk.digest()) % DIGESTS
        if writes:
            yield Write(chunk)
    mark = TaskMark(plan.batch_id, rows, digest)
    if not writes:
        _check_same(plan, own, mark)
        return mark
    yield Mark(mark)
    now: Marks = yield ReadMarks()
    if now.batch is not None and now.batch.batch_id >= plan.batch_id:
        raise _finished(plan, now.batch)
    yield Commit()
    return mark


def must_write(plan: TaskPlan, own: TaskMark | None, batch: BatchMark | None) -> bool:
    """Whether the task has its rows still to write; False if an earlier attempt has."""
    if own is not None and own.batch_id > plan.batch_id:
        raise QuireError(
            f"{plan} is behind what is written already, up to batch {own.batch_id}: the checkpoint is older than the "
            "sink, or another query has a copy of it"
        )
    if own is not None and own.batch_id == plan.batch_id:
        return False
    if batch is not None and batch.batch_id >= plan.batch_id:
        raise _finished(plan, batch)
    if not plan.allow_missing_marker:
        _check_not_missing(plan, own, batch)
    return True


def _check_not_missing(plan: TaskPlan, own: TaskMark | None, batch: BatchMark | None) -> None:
    if batch is None:
        missing = plan.batch_id > 0
    else:
        missing = plan.task < batch.tasks and (own is None or own.batch_id < batch.batch_id)
    if missing:
        raise QuireError(
            f"{plan} does not find its mark of the batch before, so whether its rows are written already cannot be "
            "known: marks expire with the offsets of a group that rests (offsets.retention.minutes), go with the "
            "sink's topic, and are not there yet if earlier batches were not written here; if nothing of this batch "
            "is in the topic, or twice would do, start once with option allowMissingMarker true"
        )


def _check_same(plan: TaskPlan, own: TaskMark | None, found: TaskMark) -> None:
    if own != found:
        assert own is not None
        raise QuireError(
            f"{plan} was written already, and with other rows: {own.rows} rows with hash {own.digest:016x} then, "
            f"{found.rows} with {found.digest:016x} now; a batch must give the same rows in the same tasks each time "
            "it runs (no random values, no other number of partitions), and each write of a batch needs an option sink "
            "of its own"
        )


def _finished(plan: TaskPlan, batch: BatchMark) -> QuireError:
    return QuireError(
        f"{plan} has nothing written, and batch {batch.batch_id} was finished before by {batch.tasks} tasks: the batch "
        "was split in another way then, or this task has outlived its driver"
    )


def finish_batch(sink: SinkName, batch_id: int, tasks: int) -> Generator[Step, Any, None]:
    """Sees to it that the `tasks` that are done have written the whole batch, and nobody else any of it."""
    before: Marks = yield ReadMarks()
    last = before.batch
    if last is not None and (last.batch_id > batch_id or (last.batch_id == batch_id and last.tasks != tasks)):
        raise QuireError(
            f"batch {batch_id} of {sink} ran with {tasks} tasks, and batch {last.batch_id} was finished before by "
            f"{last.tasks}: the batch was split in another way then, or another query has a copy of the checkpoint"
        )
    yield LeaveBatchMark(BatchMark(batch_id, tasks))
    known: Known = yield FindTasks()
    for task in sorted(task for task in known.open if task >= tasks):
        yield Fence(task)
    beyond: Marks = yield ReadMarks(tuple(sorted(task for task in known.tasks if task >= tasks)))
    for task, mark in beyond.tasks.items():
        if mark.batch_id >= batch_id:
            raise QuireError(
                f"task {task} of {sink} has written {mark.rows} rows of batch {mark.batch_id}, which now has {tasks} "
                "tasks: it was split in another way before, and some rows are in the sink twice"
            )
