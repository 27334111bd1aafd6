"""Jobs of one kind: a limited number at a time, in order, and none after the end."""

from quire.storage.few_jobs import FewJobs
from tests.storage.manual_jobs import ManualJobs


def test_no_more_than_allowed_are_begun_and_the_next_one_follows() -> None:
    jobs, done = ManualJobs(), list[int]()
    few = FewJobs(jobs, 2)
    for number in range(4):
        few.submit(lambda number=number: number, done.append, lambda _: None)  # type: ignore[misc]
    assert len(jobs) == 2
    jobs.run_next()
    assert (len(jobs), done) == (2, [0])
    jobs.run_all()
    assert done == [0, 1, 2, 3]


def test_a_job_that_fails_makes_room_too() -> None:
    jobs, failures, done = ManualJobs(), list[Exception](), list[str]()
    few = FewJobs(jobs, 1)

    def fail() -> str:
        raise OSError

    few.submit(fail, done.append, failures.append)
    few.submit(lambda: "second", done.append, failures.append)
    jobs.run_all()
    assert [type(failure) for failure in failures] == [OSError]
    assert done == ["second"]


def test_nothing_is_begun_or_reported_after_stop() -> None:
    jobs, done = ManualJobs(), list[str]()
    few = FewJobs(jobs, 1)
    few.submit(lambda: "first", done.append, lambda _: None)
    few.submit(lambda: "second", done.append, lambda _: None)
    few.stop()
    jobs.run_all()
    few.submit(lambda: "third", done.append, lambda _: None)
    assert not jobs
    assert done == []
