"""Through crashes, late attempts and different splits, every row of a batch is committed once, or the query fails and
keeps failing. The steps are the sink's own, run on a model of the cluster.
"""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_quire.errors import QuireError
from pyspark_quire.exactly_once import TaskPlan, must_write
from pyspark_quire.marks import BatchMark, SinkName, TaskMark
from tests.spark.sink.model_sink import SINK, Actor, Attempt, FencedError, ModelCluster, Split

ROWS = (1, 2, 3)


def all_splits(most_tasks: int) -> Iterator[Split]:
    for tasks in range(1, most_tasks + 1):
        for chosen in itertools.product(range(tasks), repeat=len(ROWS)):
            yield [[row for row, task in zip(ROWS, chosen, strict=True) if task == number] for number in range(tasks)]


SPLITS = list(all_splits(3))


def written_in_part(split: Split, tasks: int, *, finished: bool = False) -> ModelCluster:
    """A cluster after a crash: in the first attempt, the tasks in the bits of `tasks` had committed."""
    cluster = ModelCluster()
    attempt = Attempt(cluster, 0, split)
    for number, task in enumerate(attempt.tasks):
        if tasks >> number & 1:
            task.run()
    if finished:
        attempt.run()
    return cluster


@pytest.mark.parametrize("first", SPLITS, ids=str)
def test_after_a_crash_any_other_split_writes_every_row_once_or_fails(first: Split) -> None:
    for tasks in range(1 << len(first)):
        for second in SPLITS:
            cluster = written_in_part(first, tasks)
            again = Attempt(cluster, 0, second)
            again.run()
            assert again.finished == (again.error is None)
            if again.finished:
                assert cluster.rows_of(0) == list(ROWS)
            else:
                assert first != second, f"the same split fails: {again.error}"


@pytest.mark.parametrize("first", SPLITS, ids=str)
def test_a_finished_batch_that_runs_again_writes_nothing(first: Split) -> None:
    for second in SPLITS:
        cluster = written_in_part(first, 0, finished=True)
        again = Attempt(cluster, 0, second)
        again.run()
        assert cluster.rows_of(0) == list(ROWS)
        assert again.finished == (first == second), "another split is refused although nothing is lost"


def test_a_failed_query_keeps_failing_however_the_batch_is_split() -> None:
    """Two tasks first, one of which committed; then one task that wrote everything: row 2 is there twice."""
    cluster = written_in_part([[1, 3], [2]], 0b10)
    again = Attempt(cluster, 0, [[1, 2, 3]])
    again.run()
    assert "task 1 of sink out of query query has written 1 rows of batch 0" in str(again.error)
    assert cluster.rows_of(0) == [1, 2, 2, 3]
    for split in SPLITS:
        later = Attempt(cluster, 0, split)
        later.run()
        assert not later.finished
    assert cluster.rows_of(0) == [1, 2, 2, 3]


def test_a_zombie_whose_number_is_not_used_again_is_stopped_at_whichever_step_it_wakes_up() -> None:
    """Every way to mix the six steps of task 1 of a dead attempt with all steps of the next, which has one task."""
    finished = 0
    for turns in itertools.combinations(range(17), 6):
        cluster = ModelCluster()
        zombie = Attempt(cluster, 0, [[], [1]]).tasks[1]
        again = Attempt(cluster, 0, [[1]])
        for turn in range(17):
            again.tasks_over()
            for actor in [zombie] if turn in turns else again.actors:
                if not actor.over:
                    actor.step()
        _run_out(cluster, [zombie, *again.actors])
        again.tasks_over()
        _run_out(cluster, again.actors)
        if again.finished:
            finished += 1
            assert cluster.rows_of(0) == [1], turns
    assert finished


@pytest.mark.parametrize("steps", range(6))
def test_a_driver_does_not_wait_for_the_transaction_of_a_task_that_is_dead(steps: int) -> None:
    cluster = ModelCluster()
    dead = Attempt(cluster, 0, [[], [1]]).tasks[1]
    for _ in range(steps):
        dead.step()
    again = Attempt(cluster, 0, [[1]])
    again.run()
    assert again.finished
    assert cluster.rows_of(0) == [1]


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_no_interleaving_of_crashes_zombies_and_other_splits_loses_or_repeats_a_row_silently(
    data: st.DataObject,
) -> None:
    """Tasks and drivers of earlier attempts continue at random; transactions time out; Spark loses its record of
    commits."""
    cluster = ModelCluster()
    batch_id = 0
    attempts = [Attempt(cluster, batch_id, data.draw(st.sampled_from(SPLITS)))]
    finished: set[int] = set()
    for _ in range(data.draw(st.integers(0, 120))):
        current = attempts[-1]
        current.tasks_over()
        alive = [actor for attempt in attempts for actor in attempt.actors]
        action = data.draw(st.sampled_from(["mine"] * 6 + ["any"] * 4 + ["crash", "timeout"]))
        if current.error is not None or action == "crash":
            attempts.append(Attempt(cluster, batch_id, data.draw(st.sampled_from([current.split, *SPLITS]))))
        elif current.finished:
            assert cluster.rows_of(batch_id) == list(ROWS)
            finished.add(batch_id)
            if data.draw(st.booleans()):  # otherwise Spark dies before it has recorded that, and runs the batch again
                batch_id += 1
            attempts.append(Attempt(cluster, batch_id, data.draw(st.sampled_from([current.split, *SPLITS]))))
        elif action == "timeout" and cluster.open:
            cluster.fence(data.draw(st.sampled_from(sorted(cluster.open))))
        else:
            choice = current.actors if action == "mine" else alive
            if choice:
                data.draw(st.sampled_from(choice)).step()
    for attempt in attempts:
        _run_out(cluster, attempt.actors)
    for batch in finished:
        assert cluster.rows_of(batch) == list(ROWS)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_with_the_same_split_nothing_but_fencing_ever_fails_and_the_batches_get_done(data: st.DataObject) -> None:
    cluster = ModelCluster()
    for batch_id in range(3):
        split = data.draw(st.sampled_from(SPLITS))
        zombies: list[Actor] = []
        for _ in range(data.draw(st.integers(0, 4))):
            attempt = Attempt(cluster, batch_id, split)
            for _ in range(data.draw(st.integers(0, 25))):
                attempt.tasks_over()
                choice = [*attempt.actors, *(zombie for zombie in zombies if not zombie.over)]
                if choice:
                    data.draw(st.sampled_from(choice)).step()
            assert attempt.error is None or isinstance(attempt.error, FencedError)
            zombies += attempt.actors
        _run_out(cluster, zombies)
        last = Attempt(cluster, batch_id, split)
        last.run()
        assert last.finished, last.error
    for batch_id in range(3):
        assert cluster.rows_of(batch_id) == list(ROWS)


def _run_out(cluster: ModelCluster, actors: list[Actor]) -> None:
    """All tasks run to their end; one that waits for an abandoned transaction sees it time out."""
    while running := [actor for actor in actors if not actor.over]:
        for actor in running:
            if actor.waits:
                for task in sorted(cluster.open):
                    cluster.fence(task)
            actor.step()


def plan(batch_id: int, task: int = 0, *, allow_missing_marker: bool = False) -> TaskPlan:
    return TaskPlan(SINK, batch_id, task, allow_missing_marker)


def test_a_new_query_and_a_task_that_is_new_to_it_have_no_marks() -> None:
    assert must_write(plan(0), None, None)
    assert must_write(plan(5, task=2), None, BatchMark(4, 2))
    assert must_write(plan(5, task=2), TaskMark(1, 9, 9), BatchMark(4, 2)), "idle since batch 1"


@pytest.mark.parametrize(
    ("own", "batch"),
    [(None, None), (None, BatchMark(4, 1)), (TaskMark(3, 1, 1), BatchMark(4, 1)), (TaskMark(4, 1, 1), None)],
)
def test_a_missing_mark_is_an_error_unless_the_user_allows_it(own: TaskMark | None, batch: BatchMark | None) -> None:
    with pytest.raises(QuireError, match=r"does not find its mark of the previous batch.*allowMissingMarker"):
        must_write(plan(5), own, batch)
    assert must_write(plan(5, allow_missing_marker=True), own, batch)


def test_a_checkpoint_older_than_the_sink_is_refused() -> None:
    with pytest.raises(QuireError, match=r"task 0 of batch 5 of sink out of query query is older than batch 6"):
        must_write(plan(5, allow_missing_marker=True), TaskMark(6, 1, 1), None)


def test_a_task_that_outlived_its_driver_is_refused() -> None:
    with pytest.raises(QuireError, match="batch 5 was finished before by 2 tasks"):
        must_write(plan(5, task=2, allow_missing_marker=True), None, BatchMark(5, 2))


def test_a_driver_with_an_older_checkpoint_is_refused() -> None:
    cluster = ModelCluster()
    for batch_id in range(3):
        Attempt(cluster, batch_id, [[1, 2, 3]]).run()
    older = Attempt(cluster, 1, [[1, 2, 3]])
    older.run()
    assert "which is already written" in str(older.error)


def test_names_of_sinks_that_look_alike_do_not_meet() -> None:
    plain, dashed = SinkName("q", "a"), SinkName("q", "a-1")
    assert plain.task_number(plain.task(12)) == 12
    assert plain.task_number(dashed.task(0)) is None
    assert dashed.task_number(plain.task(1)) is None
    assert plain.task_number(plain.batches) is None
    assert dashed.batches != plain.task(1)


def test_marks_are_read_back_as_they_were_left_and_nothing_else_is() -> None:
    task, batch = TaskMark(7, 3, 2**64 - 1), BatchMark(7, 2)
    assert TaskMark.from_offset(task.to_offset(), "g") == task
    assert BatchMark.from_offset(batch.to_offset(), "g") == batch
    with pytest.raises(QuireError, match=r"group g holds offset 0 with the note .* which no sink has written"):
        TaskMark.from_offset(batch.to_offset(), "g")
    with pytest.raises(QuireError, match="group g holds offset 0"):
        BatchMark.from_offset(task.to_offset()._replace(metadata="tasks"), "g")
