"""How a stream's batch is written once, through any crash: the steps of its tasks and of its driver.

A task (`write_task`)                                     The driver, when all tasks are done (`finish_batch`)
1. takes its transactional id, which fences earlier       1. leaves its mark: the batch, and how many tasks it had
   attempts and ends their transactions                   2. looks up every task that this sink ever had
2. reads its own mark and the driver's                    3. fences those from the number of tasks on that have a
3. writes the rows and its new mark in one transaction       transaction open, so as not to wait for it
4. reads the driver's mark once more, then commits        4. reads the marks of all of those: none is of this batch

If a task's mark already has this batch, an earlier attempt has written it: the rows are then only counted and hashed,
and must be the same. So when a batch succeeds, tasks 0 to n - 1 have each committed exactly their rows, and no other
task has committed any for this batch: every row is in the log once. If Spark splits a repeated batch differently, some
task finds other rows than it has written, or a task no longer exists but its mark does. Both fail the query, on every
restart.

A task that outlives its driver (a zombie) is fenced by the next attempt of the same task. If the next attempt does not
use its number, the driver's mark stops it: either the task sees that mark before it commits, or its own mark was in a
transaction when the driver looked. The driver then fences the task, or reads its mark once that is committed.

Both are generators: they yield each step and receive its result. `sink_task` and `sink_driver` execute the steps on a
cluster, the tests on a model that loses, delays and repeats them.
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
    """Take over the transactional id of a task, and end its open transaction."""

    task: int


@dataclass(slots=True, frozen=True)
class ReadMarks:
    """-> Marks: the driver's and those of some tasks, read once the transactions that set them have ended."""

    tasks: tuple[int, ...] = ()


class Marks(NamedTuple):
    """The marks that exist; tasks without one are left out."""

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
    """Task numbers: all that ever existed, and those with an open transaction."""

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
    """Writes the rows unless they are written already; raises QuireError, without a commit, if it cannot know."""
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
    """Whether the task must still write its rows; False if an earlier attempt has."""
    if own is not None and own.batch_id > plan.batch_id:
        raise QuireError(
            f"{plan} is older than batch {own.batch_id}, which is already written: the checkpoint is older than the "
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
            f"{plan} does not find its mark of the previous batch, so it cannot know whether its rows are written "
            "already: marks expire with the offsets of an inactive group (offsets.retention.minutes), are deleted with "
            "the topic that option markerTopic names, and do not exist if earlier batches were not written here; if "
            "nothing of this batch is in the topic, or duplicates are acceptable, start once with option "
            "allowMissingMarker true"
        )


def _check_same(plan: TaskPlan, own: TaskMark | None, found: TaskMark) -> None:
    if own != found:
        assert own is not None
        raise QuireError(
            f"{plan} was already written with other rows: {own.rows} rows with hash {own.digest:016x} then, "
            f"{found.rows} with {found.digest:016x} now; a batch must give the same rows in the same tasks each time "
            "it runs (no random values, the same number of partitions), and each write of a batch needs an option sink "
            "of its own"
        )


def _finished(plan: TaskPlan, batch: BatchMark) -> QuireError:
    return QuireError(
        f"{plan} has written nothing, but batch {batch.batch_id} was finished before by {batch.tasks} tasks: the batch "
        "was split differently then, or this task has outlived its driver"
    )


def finish_batch(sink: SinkName, batch_id: int, tasks: int) -> Generator[Step, Any, None]:
    """Ensures that the `tasks` which are done have written the whole batch, and that no other task has written any."""
    before: Marks = yield ReadMarks()
    last = before.batch
    if last is not None and (last.batch_id > batch_id or (last.batch_id == batch_id and last.tasks != tasks)):
        raise QuireError(
            f"batch {batch_id} of {sink} ran with {tasks} tasks, but batch {last.batch_id} was finished before by "
            f"{last.tasks}: the batch was split differently then, or another query has a copy of the checkpoint"
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
                "tasks: it was split differently before, and some rows are in the sink twice"
            )
