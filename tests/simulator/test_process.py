"""A paused process: the world continues without it, and missed events arrive late and in order."""

from simulator.clock import HostClock, SimClock
from simulator.jobs import SimJobs
from simulator.process import Process
from simulator.random import SimRandom
from simulator.trace import Trace


def test_timers_of_a_paused_process_come_late_and_in_order() -> None:
    clock = SimClock()
    process = Process(clock)
    host = HostClock(clock, process=process)
    seen: list[tuple[str, float]] = []
    for delay_ms in (20, 10):
        host.call_later(delay_ms, lambda name=str(delay_ms): seen.append((name, clock.monotonic_ms())))  # type: ignore[misc]
    clock.call_later(30, lambda: seen.append(("world", clock.monotonic_ms())))
    process.pause()
    clock.run_for(50)
    assert seen == [("world", 30)]
    process.resume()
    clock.run_for(0)
    assert seen[1:] == [("10", 50), ("20", 50)]


def test_changes_that_arrive_while_a_process_catches_up_follow_those_that_it_missed() -> None:
    clock = SimClock()
    process = Process(clock)
    seen: list[str] = []
    process.pause()
    process.run(lambda: seen.append("missed"))
    process.resume()
    process.run(lambda: seen.append("new"))
    clock.run_for(0)
    assert seen == ["missed", "new"] and not process.paused


def test_a_job_of_a_paused_process_is_done_after_the_pause() -> None:
    clock = SimClock()
    process = Process(clock)
    jobs = SimJobs(HostClock(clock, process=process), SimRandom(1))
    done: list[float] = []
    jobs.submit(lambda: 1, lambda _: done.append(clock.monotonic_ms()), lambda _: None)
    process.pause()
    clock.run_for(1000)
    assert done == []
    process.resume()
    clock.run_for(20)
    assert len(done) == 1 and done[0] >= 1000


def test_a_process_that_ends_in_a_pause_misses_everything() -> None:
    clock = SimClock()
    process = Process(clock)
    seen: list[str] = []
    process.pause()
    process.run(lambda: seen.append("missed"))
    process.end()
    process.resume()
    clock.run_for(0)
    process.run(lambda: seen.append("dead"))
    assert seen == []


def test_the_trace_knows_whose_code_runs() -> None:
    clock, trace = SimClock(), Trace()
    speakers: list[str] = []
    inner, outer = Process(clock, "inner", trace), Process(clock, "outer", trace)
    outer.run(lambda: inner.run(lambda: speakers.append(trace.speaker)))
    outer.run(lambda: speakers.append(trace.speaker))
    assert [*speakers, trace.speaker] == ["inner", "outer", ""]
