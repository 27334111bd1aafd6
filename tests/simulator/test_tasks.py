"""Coroutines on virtual time: what they wait for, the order in which they continue, and how failures surface."""

import pytest

from simulator.clock import SimClock
from simulator.tasks import Gate, Promise, Task, sleep


def test_a_task_continues_when_its_promise_is_kept() -> None:
    clock = SimClock()
    promise: Promise[int] = Promise()
    seen: list[int] = []

    async def wait() -> None:
        seen.append(await promise)

    task = Task(clock, "waiter", wait())
    clock.step()
    assert not task.ended
    promise.keep(7)
    assert seen == []
    clock.step()
    assert (seen, task.ended) == ([7], True)


def test_of_a_response_and_a_timeout_the_first_counts() -> None:
    clock = SimClock()
    promise: Promise[str] = Promise()
    seen: list[str] = []

    async def wait() -> None:
        seen.append(await promise)

    Task(clock, "waiter", wait())
    promise.keep("answer")
    promise.fail(TimeoutError())
    clock.step()
    assert seen == ["answer"]


def test_a_failed_promise_is_raised_in_the_task_and_an_uncaught_one_comes_out_of_the_clock() -> None:
    clock = SimClock()
    caught: list[Exception] = []

    async def catch(promise: Promise[None]) -> None:
        try:
            await promise
        except TimeoutError as error:
            caught.append(error)
        await promise

    promise: Promise[None] = Promise()
    task = Task(clock, "waiter", catch(promise))
    promise.fail(TimeoutError("too late"))
    with pytest.raises(TimeoutError, match="too late"):
        clock.run_until(lambda: task.ended)
    assert len(caught) == 1


def test_tasks_continue_in_the_order_in_which_their_waits_ended() -> None:
    clock = SimClock()
    seen: list[tuple[str, float]] = []

    async def nap(name: str, *durations_ms: float) -> None:
        for duration_ms in durations_ms:
            await sleep(clock, duration_ms)
            seen.append((name, clock.monotonic_ms()))

    tasks = [Task(clock, "a", nap("a", 3, 3)), Task(clock, "b", nap("b", 2, 4))]
    clock.run_until(lambda: all(task.ended for task in tasks))
    assert seen == [("b", 2), ("a", 3), ("b", 6), ("a", 6)]


def test_a_gate_holds_tasks_back_until_it_opens_and_lets_later_ones_through() -> None:
    clock = SimClock()
    gate = Gate(is_open=False)
    seen: list[str] = []

    async def pass_through(name: str) -> None:
        await gate.passed()
        seen.append(name)

    Task(clock, "early", pass_through("early"))
    clock.step()
    assert seen == []
    gate.open()
    Task(clock, "late", pass_through("late"))
    clock.run_until_idle()
    assert sorted(seen) == ["early", "late"]


def test_a_gate_that_closes_again_before_a_task_runs_holds_it_back_once_more() -> None:
    clock = SimClock()
    gate = Gate(is_open=False)
    seen: list[str] = []

    async def pass_through() -> None:
        await gate.passed()
        seen.append("through")

    Task(clock, "task", pass_through())
    clock.step()
    gate.open()
    gate.close()
    clock.run_until_idle()
    assert seen == []


def test_an_ended_task_never_continues() -> None:
    clock = SimClock()
    seen: list[str] = []

    async def nap() -> None:
        await sleep(clock, 5)
        seen.append("woke up")

    task = Task(clock, "task", nap())
    clock.step()
    task.end()
    clock.run_until_idle()
    assert seen == []
