"""Which part of a log may be cleaned, and which log comes first."""

import pytest

from quire.storage.cleaning.cleanable import Cleanable, active_is_overdue, cleanable, dirtiest
from quire.storage.log import Log
from simulator.disk import SimDisk
from tests.storage.batches import NOW_MS, append, open_log
from tests.storage.cleaning.compaction import COMPACTED, keyed


@pytest.fixture
def log(disk: SimDisk) -> Log:
    """Segments at 0, 2, 4 and 6, the last one active, one second of records in each."""
    log = open_log(disk, COMPACTED)
    for number in range(7):
        append(log, keyed((b"a", bytes(100)), timestamp=NOW_MS + number // 2 * 1000))
        if number % 2:
            log.roll(NOW_MS)
    log.flush()
    return log


def bounds(
    log: Log, cleaned_offset: int | None = None, stable_offset: int = 7, now_ms: int = NOW_MS
) -> tuple[int, int]:
    found = cleanable(log, cleaned_offset, stable_offset, now_ms)
    return found.first_dirty_offset, found.first_uncleanable_offset


def test_everything_but_the_active_segment_is_cleanable(log: Log) -> None:
    found = cleanable(log, None, 7, NOW_MS)
    assert found[:2] == (0, 6)
    assert (found.clean_bytes, found.cleanable_bytes, found.ratio) == (0, sum(s.size for s in log.segments[:3]), 1.0)


def test_clean_bytes_do_not_count_as_dirty(log: Log) -> None:
    found = cleanable(log, 4, 7, NOW_MS)
    assert found[:2] == (4, 6)
    assert found.ratio == pytest.approx(1 / 3)
    assert cleanable(log, 6, 7, NOW_MS).cleanable_bytes == 0


@pytest.mark.parametrize("cleaned_offset", [8, 100])
def test_an_offset_behind_the_log_counts_for_nothing(log: Log, cleaned_offset: int) -> None:
    assert bounds(log, cleaned_offset) == (0, 6)


def test_an_offset_before_the_log_counts_for_nothing(log: Log) -> None:
    log.delete_records_before(3)
    assert bounds(log, 1) == (3, 6)


@pytest.mark.parametrize(("stable_offset", "end"), [(7, 6), (6, 6), (5, 4), (4, 4), (1, 0), (0, 0)])
def test_nothing_undecided_is_cleanable(log: Log, stable_offset: int, end: int) -> None:
    assert bounds(log, None, stable_offset) == (0, end)


def test_unflushed_segments_are_not_cleanable(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED)
    append(log, keyed((b"a", b"1")))
    log.roll(NOW_MS)
    assert bounds(log, None, 1) == (0, 0)
    log.flush()
    assert bounds(log, None, 1) == (0, 1)


@pytest.mark.parametrize(("now_ms", "end"), [(0, 0), (499, 0), (500, 2), (1500, 4), (2500, 6)])
def test_young_records_are_not_cleanable(log: Log, now_ms: int, end: int) -> None:
    log.config = log.config._replace(min_compaction_lag_ms=500)
    assert bounds(log, now_ms=NOW_MS + now_ms) == (0, end)


def test_segments_that_wait_too_long_are_overdue(log: Log) -> None:
    log.config = log.config._replace(max_compaction_lag_ms=500)
    assert not cleanable(log, None, 7, NOW_MS + 500).overdue
    assert cleanable(log, None, 7, NOW_MS + 501).overdue
    assert not cleanable(log, 2, 7, NOW_MS + 501).overdue
    assert cleanable(log, 2, 7, NOW_MS + 1501).overdue
    assert not active_is_overdue(log, NOW_MS + 3500)
    assert active_is_overdue(log, NOW_MS + 3501)


def test_a_log_is_due_when_it_is_dirty_enough_or_overdue() -> None:
    assert Cleanable(0, 1, 40, 60, False).is_due(0.5)
    assert not Cleanable(0, 1, 50, 50, False).is_due(0.5)
    assert Cleanable(0, 1, 99, 1, True).is_due(0.5)
    assert not Cleanable(0, 0, 99, 0, True).is_due(0.5), "there is nothing to be cleaned"
    assert not Cleanable(0, 0, 0, 0, False).is_due(0.0)


def test_the_dirtiest_comes_first() -> None:
    logs = [("a", Cleanable(0, 1, 50, 50, False)), ("b", Cleanable(0, 1, 10, 90, False))]
    assert dirtiest(logs) == logs[1]
    assert dirtiest([]) is None


def test_records_without_a_time_are_as_young_as_their_file() -> None:
    disk = SimDisk(now_ms=lambda: NOW_MS)
    log = open_log(disk, COMPACTED._replace(min_compaction_lag_ms=500))
    append(log, keyed((b"a", b"1"), timestamp=-1))
    log.roll(NOW_MS)
    log.flush()
    assert bounds(log, stable_offset=1, now_ms=NOW_MS + 499) == (0, 0)
    assert bounds(log, stable_offset=1, now_ms=NOW_MS + 500) == (0, 1)
