"""Rates over a window of samples, in virtual time."""

import pytest

from quire.node.replicas.rate_window import RateWindow

RATE = 1_000_000


def moved(rate: int, portion_bytes: int, duration_ms: float, *, reserve_ms: float = 0.0) -> int:
    """How many bytes one moves who always waits for room, and then moves a portion."""
    window, now_ms, total_bytes = RateWindow(11, 1000), 0.0, 0
    while now_ms < duration_ms:
        if window.is_used_up(rate, now_ms):
            now_ms = max(window.room_again_ms(rate, now_ms, reserve_ms), now_ms + 0.001)
        else:
            window.record(portion_bytes, now_ms)
            total_bytes += portion_bytes
    return total_bytes


@pytest.mark.parametrize("portion_bytes", [1_000, 100_000, 900_000])
@pytest.mark.parametrize("reserve_ms", [0.0, 100.0])
def test_a_steady_load_gets_the_rate(portion_bytes: int, reserve_ms: float) -> None:
    assert moved(RATE, portion_bytes, 120_000, reserve_ms=reserve_ms) == pytest.approx(120 * RATE, rel=0.05)


def test_the_first_sample_may_be_used_up_at_once_and_no_more() -> None:
    window = RateWindow(11, 1000)
    window.record(RATE - 1, 0)
    assert not window.is_used_up(RATE, 0) and window.room_bytes(RATE, 0) == 1
    window.record(1, 0)
    assert window.is_used_up(RATE, 999) and not window.is_used_up(RATE, 1001)


@pytest.mark.parametrize("rate", [0, 1])
def test_a_portion_passes_in_every_window_however_low_the_rate_is(rate: int) -> None:
    assert moved(rate, 1_000_000, 109_999) == 10 * 1_000_000


def test_what_is_older_than_the_window_is_forgotten() -> None:
    window = RateWindow(3, 1000)
    window.record(10_000_000, 500)
    assert window.is_used_up(RATE, 3499) and window.room_again_ms(RATE, 600, 0) == 3500
    assert not window.is_used_up(RATE, 3500) and window.room_bytes(RATE, 3500) == RATE


def test_the_end_of_one_sample_may_make_room_before_the_rest_has_been_paid_for() -> None:
    window = RateWindow(2, 1000)
    window.record(5_000_000, 0)
    window.record(500_000, 1000)
    assert window.room_again_ms(RATE, 1000, 0) == 2000
    assert not window.is_used_up(RATE, 2000)
