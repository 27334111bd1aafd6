"""Limiting the speed of all cleaners together."""

from quire.storage.cleaning.throttle import Throttle
from simulator.clock import SimClock


def test_work_that_was_too_fast_is_followed_by_a_pause() -> None:
    clock = SimClock()
    throttle = Throttle(clock)
    assert throttle.delay_ms(5000, 10_000, 0.0) == 500
    clock.run_for(500)
    assert throttle.delay_ms(5000, 10_000, 500.0) == 500


def test_several_cleaners_share_the_speed() -> None:
    throttle = Throttle(SimClock())
    assert [throttle.delay_ms(1000, 10_000, 0.0) for _ in range(3)] == [100, 200, 300]


def test_work_that_was_slow_enough_is_not_held_up_nor_is_what_was_not_used_kept() -> None:
    clock = SimClock()
    throttle = Throttle(clock)
    clock.run_for(10_000)
    assert throttle.delay_ms(5000, 10_000, 0.0) == 0
    assert throttle.delay_ms(5000, 10_000, 10_000.0) == 500
    assert Throttle(clock).delay_ms(1 << 40, float("inf"), 10_000.0) == 0
