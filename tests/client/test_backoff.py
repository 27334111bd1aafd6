from quire.client.backoff import Backoff
from simulator.random import SimRandom


def test_delays_double_up_to_the_maximum_and_are_spread_by_a_fifth() -> None:
    backoff = Backoff(SimRandom(1), base_ms=100, max_ms=1000)
    delays = [backoff.next_ms() for _ in range(8)]
    for delay, middle in zip(delays, [100, 200, 400, 800, 1000, 1000, 1000, 1000], strict=True):
        assert 0.8 * middle <= delay <= 1.2 * middle
    assert len(set(delays)) > 4


def test_success_resets_the_delays() -> None:
    backoff = Backoff(SimRandom(1), base_ms=100, max_ms=1000)
    for _ in range(5):
        backoff.next_ms()
    backoff.reset()
    assert backoff.next_ms() <= 120


def test_a_million_attempts_do_not_overflow() -> None:
    backoff = Backoff(SimRandom(1))
    backoff.attempts = 1_000_000
    assert backoff.next_ms() <= 1200
