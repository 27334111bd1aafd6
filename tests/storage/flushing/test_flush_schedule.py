"""flush.ms: when a dirty log is flushed, and that logs without the setting cost nothing."""

import pytest

from quire.storage.flushing.flush_schedule import FlushSchedule
from quire.storage.log import Log
from quire.storage.log_config import NEVER, LogConfig
from simulator.clock import SimClock
from simulator.disk import SimDisk
from tests.storage.batches import append_values, open_log


class Watched:
    """Logs under a schedule on virtual time; flushes take no time and are recorded."""

    def __init__(self, longest_pause_ms: int = NEVER) -> None:
        self.disk = SimDisk()
        self.clock = SimClock()
        self.flushes: list[tuple[float, str]] = []
        self.schedule = FlushSchedule(self.clock, longest_pause_ms)

    def log(self, flush_ms: int, name: str = "orders-0") -> Log:
        opened = open_log(self.disk, LogConfig(flush_ms=flush_ms), folder=f"data/{name}")
        self.watch(opened)
        return opened

    def watch(self, log: Log) -> None:
        self.schedule.watch(log, self._flush)

    def _flush(self, log: Log) -> None:
        log.flush()
        self.flushes.append((self.clock.monotonic_ms(), log.path.rpartition("/")[2]))


def test_a_dirty_log_is_flushed_within_its_time_and_a_clean_one_is_not() -> None:
    watched = Watched()
    log = watched.log(1000)
    watched.clock.run_for(1300)
    append_values(log, b"a")
    watched.clock.run_for(1000)
    assert watched.flushes == [(2000, "orders-0")]
    watched.clock.run_for(10_000)
    assert len(watched.flushes) == 1


@pytest.mark.parametrize("longest_pause_ms", [NEVER, 5000, 1000, 300, 70, 1])
@pytest.mark.parametrize("written_ms", [0, 1, 299, 999, 1000, 1001, 2500])
def test_it_is_never_later_than_flush_ms_however_often_logs_are_looked_at(
    longest_pause_ms: int, written_ms: int
) -> None:
    watched = Watched(longest_pause_ms)
    log = watched.log(1000)
    watched.clock.run_for(written_ms)
    append_values(log, b"a")
    watched.clock.run_for(1000)
    assert log.recovery_point == 1
    ((flushed_ms, _),) = watched.flushes
    assert written_ms < flushed_ms <= written_ms + 1000


def test_more_frequent_looks_make_fewer_flushes() -> None:
    def flushes(longest_pause_ms: int) -> int:
        watched = Watched(longest_pause_ms)
        log = watched.log(1000)
        for _ in range(20):
            watched.clock.run_for(990)
            append_values(log, b"a")
        return len(watched.flushes)

    assert flushes(10) < flushes(1000)


def test_a_new_flush_ms_counts_from_when_it_was_set() -> None:
    watched = Watched()
    log = watched.log(60_000)
    append_values(log, b"a")
    watched.clock.run_for(1)
    log.config = LogConfig(flush_ms=50)
    watched.watch(log)
    watched.clock.run_for(50)
    assert watched.flushes == [(51, "orders-0")]
    log.config = LogConfig()
    watched.watch(log)
    append_values(log, b"b")
    watched.clock.run_for(200_000)
    assert len(watched.flushes) == 1


def test_a_second_notification_changes_nothing() -> None:
    watched = Watched()
    log = watched.log(1000)
    append_values(log, b"a")
    for _ in range(3):
        watched.clock.run_for(300)
        watched.watch(log)
    watched.clock.run_for(100)
    assert watched.flushes == [(1000, "orders-0")]


def test_logs_with_their_own_times_are_flushed_at_their_own_times() -> None:
    watched = Watched()
    slow, fast = watched.log(1000, "slow-0"), watched.log(100, "fast-0")
    append_values(slow, b"a")
    append_values(fast, b"a")
    watched.clock.run_for(1000)
    assert watched.flushes == [(100, "fast-0"), (1000, "slow-0")]


def test_without_flush_ms_there_is_no_timer_and_none_remains_when_the_log_is_closed() -> None:
    watched = Watched()
    watched.log(NEVER)
    assert not watched.clock.step(), "nothing was to be done"
    log = watched.log(100, "timed-0")
    append_values(log, b"a")
    log.close_files()
    watched.clock.run_for(100)
    assert not watched.clock.step()
    assert watched.flushes == []


def test_zero_means_at_once_as_far_as_a_clock_can_tell() -> None:
    watched = Watched()
    log = watched.log(0)
    append_values(log, b"a")
    watched.clock.run_for(1)
    assert log.recovery_point == 1
