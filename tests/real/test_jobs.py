"""Blocking work runs off the loop and returns its result to it, with limits, and can be stopped."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from quire.real.jobs import ThreadJobs
from quire.real.loop import new_event_loop
from quire.seams import Jobs


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = new_event_loop()
    yield made
    made.close()


def unexpected(result: object) -> None:
    raise AssertionError(result)


def test_work_runs_in_another_thread_and_its_result_on_the_loop(loop: asyncio.AbstractEventLoop) -> None:
    jobs: Jobs = ThreadJobs(loop)
    here = threading.get_ident()
    seen: list[tuple[bool, bool]] = []

    def done(worker: int) -> None:
        seen.append((worker == here, threading.get_ident() == here))
        loop.stop()

    jobs.submit(threading.get_ident, done, unexpected)
    loop.run_forever()
    jobs.stop()
    assert seen == [(False, True)]


def test_an_exception_is_returned_as_a_failure(loop: asyncio.AbstractEventLoop) -> None:
    jobs = ThreadJobs(loop)
    seen: list[Exception] = []

    def failed(error: Exception) -> None:
        seen.append(error)
        loop.stop()

    jobs.submit(lambda: 1 // 0, unexpected, failed)
    loop.run_forever()
    jobs.stop()
    assert isinstance(seen[0], ZeroDivisionError)


def test_many_jobs_all_return_from_a_few_threads(loop: asyncio.AbstractEventLoop) -> None:
    jobs = ThreadJobs(loop, threads=3)
    results: list[int] = []
    names: list[str] = []

    def work(i: int) -> int:
        names.append(threading.current_thread().name)
        return i

    def done(i: int) -> None:
        results.append(i)
        if len(results) == 500:
            loop.stop()

    for i in range(500):
        jobs.submit(lambda i=i: work(i), done, unexpected)  # type: ignore[misc]
    loop.run_forever()
    jobs.stop()
    assert sorted(results) == list(range(500))
    assert len(set(names)) <= 3


def test_one_thread_runs_jobs_in_the_order_they_came(loop: asyncio.AbstractEventLoop) -> None:
    jobs = ThreadJobs(loop, threads=1)
    results: list[int] = []
    for i in range(50):
        jobs.submit(lambda i=i: i, results.append, unexpected)  # type: ignore[misc]
    jobs.submit(lambda: None, lambda _: loop.stop(), unexpected)
    loop.run_forever()
    jobs.stop()
    assert results == list(range(50))


def test_none_is_one_too_many(loop: asyncio.AbstractEventLoop) -> None:
    """A node flushes each of its partitions in a job when it stops, and may have a hundred thousand."""
    jobs = ThreadJobs(loop, threads=1)
    go_on = threading.Event()
    finished: list[int] = []
    jobs.submit(go_on.wait, lambda _: None, unexpected)
    for number in range(100_000):
        jobs.submit(lambda number=number: number, finished.append, unexpected)  # type: ignore[misc]
    jobs.submit(lambda: None, lambda _: loop.stop(), lambda _: loop.stop())
    go_on.set()
    loop.run_forever()
    jobs.stop()
    assert finished == list(range(100_000))


def test_stop_waits_for_what_runs_drops_the_rest_and_calls_nothing_back(loop: asyncio.AbstractEventLoop) -> None:
    jobs = ThreadJobs(loop, threads=1)
    started, go_on = threading.Event(), threading.Event()
    ran: list[str] = []

    def first() -> None:
        started.set()
        go_on.wait()
        ran.append("first")

    jobs.submit(first, unexpected, unexpected)
    jobs.submit(lambda: ran.append("second"), unexpected, unexpected)
    started.wait()
    threading.Timer(0.01, go_on.set).start()
    jobs.stop()
    assert ran == ["first"]
    jobs.submit(lambda: ran.append("after stop"), unexpected, unexpected)
    loop.call_later(0.01, loop.stop)
    loop.run_forever()
    assert ran == ["first"]


def test_a_failing_continuation_is_logged_and_the_next_one_runs(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = ThreadJobs(loop, threads=1)
    jobs.submit(lambda: 0, lambda zero: unexpected(1 // zero), unexpected)
    jobs.submit(lambda: None, lambda _: loop.stop(), unexpected)
    loop.run_forever()
    jobs.stop()
    assert len(caplog.records) == 1


def test_stopping_does_not_wait_for_work_that_only_computes(loop: asyncio.AbstractEventLoop) -> None:
    jobs = ThreadJobs(loop, threads=2)
    begun, over = threading.Barrier(3), threading.Event()
    written: list[str] = []

    def compute() -> None:
        begun.wait()
        over.wait()

    def write() -> None:
        begun.wait()
        written.append("all of it")

    jobs.submit(compute, unexpected, unexpected, computes=True)
    jobs.submit(write, unexpected, unexpected)
    begun.wait()
    jobs.stop()
    assert written == ["all of it"]
    over.set()
