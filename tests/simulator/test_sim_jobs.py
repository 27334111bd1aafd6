"""Jobs finish later, in any order, and never if their host is gone."""

from collections.abc import Callable

from quire.seams import Jobs
from simulator.clock import HostClock, SimClock
from simulator.jobs import SimJobs
from simulator.random import SimRandom


def unexpected(error: Exception) -> None:
    raise AssertionError(error)


def test_work_runs_after_submit_returns_and_its_result_comes_after_the_work() -> None:
    clock = SimClock()
    jobs: Jobs = SimJobs(clock, SimRandom(1))
    seen: list[object] = []

    def work() -> int:
        seen.append("work")
        return 42

    jobs.submit(work, seen.append, unexpected)
    assert seen == []
    clock.step()
    assert seen == ["work"]
    clock.step()
    assert seen == ["work", 42]


def test_an_exception_goes_to_failed() -> None:
    clock = SimClock()
    seen: list[Exception] = []

    def work() -> None:
        raise OSError("broken disk")

    SimJobs(clock, SimRandom(1)).submit(work, lambda _: seen.append(AssertionError()), seen.append)
    clock.run_until_idle()
    assert [str(error) for error in seen] == ["broken disk"]


def finish_order(seed: int) -> list[int]:
    clock = SimClock()
    jobs = SimJobs(clock, SimRandom(seed))
    order: list[int] = []
    for number in range(10):

        def work(number: int = number) -> int:
            return number

        jobs.submit(work, order.append, unexpected)
    clock.run_until_idle()
    assert jobs.unfinished == 0
    return order


def test_jobs_overtake_each_other_the_same_way_for_the_same_seed() -> None:
    assert sorted(finish_order(1)) == list(range(10))
    assert finish_order(1) != list(range(10))
    assert finish_order(1) == finish_order(1)
    assert finish_order(1) != finish_order(2)


def test_no_callback_runs_after_stop_or_after_the_host_is_gone() -> None:
    def stop_jobs(jobs: SimJobs, host: HostClock) -> None:
        jobs.stop()

    def stop_host(jobs: SimJobs, host: HostClock) -> None:
        host.stop()

    ends: list[Callable[[SimJobs, HostClock], None]] = [stop_jobs, stop_host]
    for end in ends:
        clock = SimClock()
        host = HostClock(clock)
        jobs = SimJobs(host, SimRandom(1))
        worked: list[str] = []
        reported: list[None] = []
        jobs.submit(lambda worked=worked: worked.append("x"), reported.append, unexpected)  # type: ignore[misc]
        clock.step()
        assert worked == ["x"]
        end(jobs, host)
        clock.run_until_idle()
        assert reported == []
