"""A model of the cluster for the steps of `exactly_once`, which tests run one at a time, in any order.

Transactions are as strict as real ones: fencing aborts open transactions, a fenced producer cannot continue, and a mark
cannot be read while its transaction is open (the reader waits).
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from pyspark_quire.errors import QuireError
from pyspark_quire.exactly_once import (
    Commit,
    Fence,
    FindTasks,
    Known,
    LeaveBatchMark,
    Mark,
    Marks,
    ReadMarks,
    Step,
    TaskPlan,
    Write,
    finish_batch,
    write_task,
)
from pyspark_quire.marks import BatchMark, SinkName, TaskMark

SINK = SinkName("query", "out")
Split = Sequence[Sequence[int]]
"""The rows of each task. A row is a number, and its hash is a power of three, so different sets have different sums."""


class ModelRows(NamedTuple):
    rows: Sequence[int]

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self.rows)

    def digest(self) -> int:
        return sum(3**row for row in self.rows)


class FencedError(QuireError):
    """Another producer has taken over the transactional id."""


class _Open(NamedTuple):
    rows: list[int]
    mark: TaskMark | None


class ModelCluster:
    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.open: dict[int, _Open] = {}
        self.task_marks: dict[int, TaskMark] = {}
        self.batch_mark: BatchMark | None = None
        self.committed: list[tuple[int, int]] = []
        """The batch and row of each record that a read_committed reader sees."""

    def fence(self, task: int) -> int:
        self.open.pop(task, None)
        self.epochs[task] = self.epochs.get(task, 0) + 1
        return self.epochs[task]

    def commit(self, task: int, batch_id: int) -> None:
        opened = self.open.pop(task)
        assert opened.mark is not None
        self.committed += [(batch_id, row) for row in opened.rows]
        self.task_marks[task] = opened.mark

    def rows_of(self, batch_id: int) -> list[int]:
        return sorted(row for batch, row in self.committed if batch == batch_id)


class Actor:
    """A task or a driver that has reached some step."""

    def __init__(self, cluster: ModelCluster, steps: Generator[Step, Any, Any], batch_id: int, task: int = -1) -> None:
        self._cluster = cluster
        self._steps = steps
        self._batch_id = batch_id
        self._task = task
        self._epoch = -1
        self._next: Step | None = next(steps)
        self.error: QuireError | None = None

    @property
    def done(self) -> bool:
        return self._next is None and self.error is None

    @property
    def over(self) -> bool:
        return self._next is None

    @property
    def waits(self) -> bool:
        step = self._next
        opened = self._cluster.open
        return isinstance(step, ReadMarks) and any(task in opened and opened[task].mark for task in step.tasks)

    def step(self) -> None:
        assert self._next is not None
        if self.waits:
            return
        try:
            self._next = self._steps.send(self._perform(self._next))
        except StopIteration:
            self._next = None
        except QuireError as error:
            self._next = None
            self.error = error
            if self._epoch == self._cluster.epochs.get(self._task):
                self._cluster.open.pop(self._task, None)  # a task that fails aborts

    def run(self) -> None:
        while not self.over:
            assert not self.waits
            self.step()

    def _perform(self, step: Step) -> object:
        cluster = self._cluster
        match step:
            case Fence(task):
                epoch = cluster.fence(task)
                self._epoch = epoch if task == self._task else self._epoch
            case ReadMarks(tasks):
                found = {task: cluster.task_marks[task] for task in tasks if task in cluster.task_marks}
                return Marks(found, cluster.batch_mark)
            case Write(chunk):
                cluster.open[self._task] = _Open([*self._opened().rows, *chunk.rows], None)
            case Mark(mark):
                cluster.open[self._task] = _Open(self._opened().rows, mark)
            case Commit():
                self._opened()
                cluster.commit(self._task, self._batch_id)
            case LeaveBatchMark(mark):
                cluster.batch_mark = mark
            case FindTasks():
                return Known(frozenset(cluster.epochs) | frozenset(cluster.task_marks), frozenset(cluster.open))
        return None

    def _opened(self) -> _Open:
        if self._cluster.epochs[self._task] != self._epoch:
            raise FencedError("fenced")
        return self._cluster.open.get(self._task) or _Open([], None)


class Attempt:
    """One attempt of Spark at a batch: its tasks, and its driver when they are all done."""

    def __init__(self, cluster: ModelCluster, batch_id: int, split: Split, *, allow_missing: bool = False) -> None:
        self.split = split
        self.batch_id = batch_id
        self._cluster = cluster
        self.driver: Actor | None = None
        self.tasks = [
            Actor(
                cluster,
                write_task(TaskPlan(SINK, batch_id, task, allow_missing), [ModelRows([row]) for row in rows]),
                batch_id,
                task,
            )
            for task, rows in enumerate(split)
        ]

    @property
    def actors(self) -> list[Actor]:
        """The tasks that can take a step."""
        return [actor for actor in (*self.tasks, *([self.driver] if self.driver else [])) if not actor.over]

    @property
    def error(self) -> QuireError | None:
        found = (actor.error for actor in (*self.tasks, *([self.driver] if self.driver else [])))
        return next((error for error in found if error is not None), None)

    @property
    def finished(self) -> bool:
        return self.driver is not None and self.driver.done

    def tasks_over(self) -> None:
        """The driver begins when the last task has reported."""
        if self.driver is None and all(task.done for task in self.tasks):
            self.driver = Actor(self._cluster, finish_batch(SINK, self.batch_id, len(self.split)), self.batch_id)

    def run(self) -> None:
        for task in self.tasks:
            task.run()
        self.tasks_over()
        if self.driver is not None:
            self.driver.run()
