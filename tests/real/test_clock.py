"""Timers on both event loops: in order, cancellable, few, and independent of each other's failures."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from quire.real.clock import RealClock
from quire.real.loop import new_event_loop
from quire.seams import Clock


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    made = new_event_loop() if request.param == "uvloop" else asyncio.new_event_loop()
    yield made
    made.close()


def test_the_wall_clock_is_in_milliseconds_and_the_monotonic_clock_only_rises(loop: asyncio.AbstractEventLoop) -> None:
    clock: Clock = RealClock(loop)
    assert int(time.time() * 1000) <= clock.now_ms() <= time.time() * 1000
    earlier = clock.monotonic_ms()
    assert clock.monotonic_ms() >= earlier


def test_timers_fire_in_order_of_their_time_and_not_before_it(loop: asyncio.AbstractEventLoop) -> None:
    clock = RealClock(loop)
    fired: list[tuple[float, float]] = []

    def ask(delay: float) -> None:
        not_before = clock.monotonic_ms() + delay
        clock.call_later(delay, lambda: fired.append((not_before, clock.monotonic_ms())))

    for delay in (120, 30, 70, 0):  # far apart: time passes between these calls on a busy machine
        ask(delay)
    clock.call_later(150, loop.stop)
    loop.run_forever()
    assert len(fired) == 4
    assert fired == sorted(fired)
    assert all(at >= not_before for not_before, at in fired)


def test_timers_of_one_moment_fire_in_the_order_they_were_asked_for(loop: asyncio.AbstractEventLoop) -> None:
    clock = RealClock(loop)
    fired: list[int] = []
    clock.monotonic_ms()
    for i in range(20):
        clock.call_later(0, lambda i=i: fired.append(i))  # type: ignore[misc]
    clock.call_later(3, loop.stop)
    loop.run_forever()
    assert fired == list(range(20))


def test_a_cancelled_timer_does_not_fire_even_if_its_batch_cancels_it(loop: asyncio.AbstractEventLoop) -> None:
    clock = RealClock(loop)
    fired: list[str] = []
    clock.call_later(1, lambda: fired.append("cancelled before")).cancel()
    clock.call_later(2, lambda: victim.cancel())
    victim = clock.call_later(2, lambda: fired.append("cancelled by its neighbour"))
    last = clock.call_later(4, loop.stop)
    loop.run_forever()
    last.cancel()
    assert fired == []


def test_an_earlier_timer_asked_for_later_is_not_held_up(loop: asyncio.AbstractEventLoop) -> None:
    clock = RealClock(loop)
    far = clock.call_later(60_000, lambda: None)
    clock.call_later(1, loop.stop)
    loop.run_forever()
    far.cancel()


def test_cancelled_timers_are_swept_out(loop: asyncio.AbstractEventLoop) -> None:
    clock = RealClock(loop)
    kept = clock.call_later(60_000, lambda: None)
    for _ in range(10_000):
        clock.call_later(30_000, lambda: None).cancel()
    assert len(clock._timers) < 1000
    kept.cancel()


def test_a_failing_callback_is_logged_and_affects_no_other(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    clock = RealClock(loop)

    def fail() -> None:
        raise RuntimeError("on purpose")

    clock.call_later(1, fail)
    clock.call_soon(fail)
    clock.call_soon(lambda: None)
    clock.call_later(3, loop.stop)
    loop.run_forever()
    assert len(caplog.records) == 2


def test_call_soon_runs_after_every_event_of_the_batch(loop: asyncio.AbstractEventLoop) -> None:
    clock = RealClock(loop)
    order: list[str] = []

    def event(name: str) -> None:
        order.append(name)
        clock.call_soon(lambda: order.append("soon after " + name))

    loop.call_soon(event, "a")
    loop.call_soon(event, "b")
    clock.call_later(2, loop.stop)
    loop.run_forever()
    assert order == ["a", "b", "soon after a", "soon after b"]


def test_a_timer_asked_for_by_another_does_not_delay_the_earlier_ones(loop: asyncio.AbstractEventLoop) -> None:
    clock = RealClock(loop)
    started = clock.monotonic_ms()

    def ask_for_another() -> None:
        clock.call_later(600_000, lambda: None)

    clock.call_later(1, ask_for_another)
    clock.call_later(20, loop.stop)
    loop.run_forever()
    assert clock.monotonic_ms() - started < 300_000
