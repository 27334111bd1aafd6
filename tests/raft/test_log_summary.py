"""Epochs and ends of a log."""

from quire.raft.log_summary import LogPosition, LogSummary


def three_epochs() -> LogSummary:
    log = LogSummary()
    log.append(1, 0, 10)
    log.append(3, 10, 20)
    log.append(3, 20, 25)
    log.append(4, 25, 30)
    return log


def test_the_end_of_an_epoch_is_where_the_next_starts() -> None:
    log = three_epochs()
    assert log.end_of_epoch(1) == LogPosition(1, 10)
    assert log.end_of_epoch(3) == LogPosition(3, 25)
    assert log.end_of_epoch(4) == LogPosition(4, 30)


def test_an_unknown_epoch_is_answered_with_the_largest_below_it() -> None:
    log = three_epochs()
    assert log.end_of_epoch(2) == LogPosition(1, 10)
    assert log.end_of_epoch(9) == LogPosition(4, 30)
    assert log.end_of_epoch(0) == LogPosition(0, 0)


def test_a_longer_log_of_an_older_epoch_is_behind() -> None:
    assert LogPosition(3, 1_000) < LogPosition(4, 1)


def test_truncating_forgets_epochs_that_are_gone() -> None:
    log = three_epochs()
    log.truncate(12)
    assert log.last == LogPosition(3, 12)
    log.truncate(10)
    assert log.last == LogPosition(1, 10)


def test_truncating_takes_back_what_was_synced() -> None:
    log = three_epochs()
    log.sync(30, 0)
    log.truncate(12)
    assert not log.is_cut_synced
    log.sync(12, 1)
    assert log.is_synced


def test_a_sync_from_before_a_truncation_says_nothing_about_the_log_after_it() -> None:
    log = three_epochs()
    log.truncate(12)
    log.sync(30, 0)
    assert not log.is_cut_synced


def test_a_log_that_starts_at_a_snapshot_knows_the_epoch_it_starts_in() -> None:
    log = three_epochs()
    log.forget_before(LogPosition(3, 20))
    assert log.start == LogPosition(3, 20)
    assert log.epoch_starts == [(3, 20), (4, 25)]
    log.forget_before(LogPosition(3, 25))
    assert log.epoch_starts == [(4, 25)]
    log.forget_before(LogPosition(4, 30))
    assert log.epoch_starts == []
    assert log.last == LogPosition(4, 30)


def test_a_snapshot_in_place_of_the_log_is_its_end() -> None:
    log = three_epochs()
    log.restart_at(LogPosition(7, 100))
    assert log.last == LogPosition(7, 100)
    assert not log.is_synced
    log.sync(100, 1)
    assert log.is_synced
