"""A stall of the process is detected by the next event of any kind."""

from quire.controller.stall_watch import StallWatch


def test_a_process_that_looks_in_time_has_not_stalled() -> None:
    watch = StallWatch(2_000, now_ms=100)
    assert watch.interval_ms == 1_000
    assert [watch.look(now_ms) for now_ms in (1_100, 2_100, 2_150, 4_150)] == [0, 0, 0, 0]


def test_a_gap_above_the_limit_is_a_stall_and_reported_once() -> None:
    watch = StallWatch(2_000, now_ms=0)
    assert watch.look(2_001) == 2_001
    assert watch.look(2_002) == 0
    assert watch.look(12_002) == 10_000
