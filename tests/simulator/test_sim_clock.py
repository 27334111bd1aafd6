"""Virtual time passes from event to event, in one order."""

import pytest

from quire.seams import Clock
from simulator.clock import HostClock, SimClock


def test_events_run_in_time_order_and_ties_in_the_order_they_were_asked_for() -> None:
    clock = SimClock()
    seen: list[str] = []
    clock.call_later(20, lambda: seen.append("late"))
    clock.call_later(10, lambda: seen.append("first"))
    clock.call_later(10, lambda: seen.append("second"))
    clock.run_until_idle()
    assert seen == ["first", "second", "late"]
    assert clock.monotonic_ms() == 20


def test_call_soon_runs_after_the_whole_batch() -> None:
    clock = SimClock()
    seen: list[str] = []

    def first() -> None:
        clock.call_soon(lambda: seen.append("soon"))
        seen.append("first")

    clock.call_later(5, first)
    clock.call_later(5, lambda: seen.append("second"))
    clock.step()
    assert seen == ["first", "second", "soon"]


def test_callbacks_scheduled_by_a_soon_callback_run_in_the_next_round_at_the_same_instant() -> None:
    clock = SimClock()
    seen: list[float] = []
    clock.call_soon(lambda: clock.call_soon(lambda: seen.append(clock.monotonic_ms())))
    clock.step()
    assert seen == []
    clock.step()
    assert seen == [0.0]
    assert not clock.step()


def test_run_for_stops_exactly_there_and_keeps_later_events() -> None:
    clock = SimClock()
    seen: list[str] = []
    clock.call_later(10, lambda: seen.append("in"))
    clock.call_later(11, lambda: seen.append("out"))
    clock.run_for(10)
    assert (seen, clock.monotonic_ms()) == (["in"], 10)
    clock.run_for(1)
    assert seen == ["in", "out"]


def test_a_cancelled_timer_does_not_run() -> None:
    clock = SimClock()
    seen: list[str] = []
    timer = clock.call_later(1, lambda: seen.append("no"))
    timer.cancel()
    clock.run_for(10)
    assert seen == []


def test_run_until_fails_when_the_condition_is_not_met_in_time() -> None:
    clock = SimClock()

    def again() -> None:
        clock.call_later(100, again)

    again()
    with pytest.raises(AssertionError, match="within 1000 ms"):
        clock.run_until(lambda: False, limit_ms=1000)
    with pytest.raises(AssertionError, match="nothing is left"):
        SimClock().run_until(lambda: False)


def test_a_raising_callback_leaves_the_rest_of_the_queue_in_place() -> None:
    clock = SimClock()
    seen: list[str] = []

    def fail() -> None:
        raise RuntimeError("crash")

    clock.call_later(1, fail)
    clock.call_later(1, lambda: seen.append("after"))
    with pytest.raises(RuntimeError, match="crash"):
        clock.step()
    clock.step()
    assert seen == ["after"]


def test_endless_rounds_at_one_instant_are_reported() -> None:
    clock = SimClock()

    def again() -> None:
        clock.call_later(0, again)

    again()
    with pytest.raises(AssertionError, match="time stands still"):
        clock.run_for(1)


def test_a_jump_of_the_wall_clock_does_not_touch_timers() -> None:
    clock = SimClock(start_ms=1000)
    seen: list[int] = []
    clock.call_later(10, lambda: seen.append(clock.now_ms()))
    clock.jump_wall(-500)
    clock.run_until_idle()
    assert seen == [510]


def test_a_stopped_host_is_never_called_again_and_others_are() -> None:
    clock = SimClock(start_ms=0)
    host, other = HostClock(clock), HostClock(clock, skew_ms=30)
    seen: list[tuple[str, int]] = []
    for name, view in (("host", host), ("other", other)):

        def note(name: str = name, view: Clock = view) -> None:
            seen.append((name, view.now_ms()))

        view.call_later(10, note)
        view.call_soon(note)
    host.stop()
    clock.run_until_idle()
    assert seen == [("other", 30), ("other", 40)]


def test_after_a_stall_the_clock_has_advanced_and_timers_are_late() -> None:
    clock = SimClock()
    host = HostClock(clock)
    before = host.now_ms()
    fired: list[float] = []
    host.call_later(100, lambda: fired.append(host.monotonic_ms()))
    host.stall(5000)
    assert host.monotonic_ms() == 5000
    assert host.now_ms() == before + 5000
    clock.run_for(100)
    assert fired == [5100]


def test_a_fast_clock_shows_more_time_and_its_timers_come_early() -> None:
    clock = SimClock(start_ms=0)
    host = HostClock(clock, rate=2.0)
    fired: list[tuple[float, float]] = []
    host.call_later(100, lambda: fired.append((clock.monotonic_ms(), host.monotonic_ms())))
    clock.run_for(50)
    assert fired == [(50, 100)]
    assert host.now_ms() == 100


def test_a_timer_waits_until_a_clock_that_became_slower_shows_its_time() -> None:
    clock = SimClock(start_ms=0)
    host = HostClock(clock)
    fired: list[tuple[float, float]] = []
    host.call_later(100, lambda: fired.append((clock.monotonic_ms(), host.monotonic_ms())))
    clock.run_for(50)
    host.drift(0.5)
    clock.run_for(99)
    assert fired == []
    clock.run_for(1)
    assert fired == [(150, 100)]


def test_a_timer_of_a_slow_clock_comes_when_the_clock_is_set_right_and_shows_its_time() -> None:
    clock = SimClock(start_ms=0)
    host = HostClock(clock, rate=0.5)
    fired: list[tuple[float, float]] = []
    host.call_later(100, lambda: fired.append((clock.monotonic_ms(), host.monotonic_ms())))
    clock.run_for(20)
    host.drift(1.0)
    clock.run_for(1000)
    assert fired == [(110, 100)]


def test_a_clock_forgets_timers_that_have_come_or_were_cancelled() -> None:
    clock = SimClock()
    host = HostClock(clock)
    host.call_later(100, lambda: None)
    host.call_later(200, lambda: None).cancel()
    clock.run_for(100)
    assert host.pending == {}


def test_a_cancelled_timer_of_a_slower_clock_does_not_come() -> None:
    clock = SimClock()
    host = HostClock(clock)
    fired: list[str] = []
    timer = host.call_later(100, lambda: fired.append("late"))
    host.drift(0.5)
    clock.run_for(150)
    timer.cancel()
    clock.run_for(1000)
    assert fired == [] and timer.cancelled


def test_a_delay_that_is_lost_in_rounding_still_lets_time_pass() -> None:
    clock = SimClock()
    host = HostClock(clock, rate=1.1)
    clock.run_for(10_000)
    deadline_ms = host.monotonic_ms() + 1e-12

    def wait() -> None:
        if host.monotonic_ms() < deadline_ms:
            host.call_later(deadline_ms - host.monotonic_ms(), wait)

    wait()
    clock.run_until_idle()
    assert host.monotonic_ms() >= deadline_ms
