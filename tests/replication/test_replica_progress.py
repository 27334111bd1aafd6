"""How far a follower has copied, and whether it keeps up, judged by samples of the leader's end."""

import pytest

from quire.replication.replica_progress import NEVER, ReplicaProgress

MAX_LAG_MS = 100


def fetched(offset: int, leader_end: int, progress: ReplicaProgress | None = None) -> ReplicaProgress:
    progress = progress or ReplicaProgress()
    progress.fetched(offset, 0, 50, leader_start=0, leader_end=leader_end)
    return progress


def test_a_follower_that_has_not_fetched_was_never_in_sync() -> None:
    progress = ReplicaProgress()
    progress.sampled(10, 1000, 5, 900)
    assert progress.in_sync_at_ms == NEVER
    assert progress.check_lag(1000, MAX_LAG_MS)


def test_a_follower_at_the_leaders_end_is_in_sync_now() -> None:
    progress = fetched(10, 10)
    progress.sampled(10, 1000, 5, 900)
    assert progress.in_sync_at_ms == 1000
    assert not progress.check_lag(1000 + MAX_LAG_MS, MAX_LAG_MS)
    assert progress.check_lag(1001 + MAX_LAG_MS, MAX_LAG_MS)


def test_a_follower_at_the_end_of_the_last_sample_was_in_sync_then() -> None:
    progress = fetched(5, 10)
    progress.sampled(10, 1000, 5, 900)
    assert progress.in_sync_at_ms == 900


def test_a_follower_behind_the_last_sample_keeps_its_earlier_time() -> None:
    progress = fetched(5, 5)
    progress.sampled(5, 500, 0, 400)
    progress.sampled(20, 1000, 10, 900)
    assert progress.in_sync_at_ms == 500


def test_the_time_does_not_go_back() -> None:
    progress = fetched(10, 10)
    progress.sampled(10, 1000, 5, 900)
    progress.sampled(20, 1100, 10, 950)
    assert progress.in_sync_at_ms == 1000


def test_a_new_member_of_the_isr_gets_the_whole_time_from_the_next_sample() -> None:
    progress = ReplicaProgress()
    progress.counts_as_in_sync()
    assert not progress.check_lag(1e9, MAX_LAG_MS)
    progress.sampled(10, 1000, 5, 900)
    assert progress.in_sync_at_ms == 1000


@pytest.mark.parametrize(("offset", "keeps_up"), [(9, False), (10, True), (12, True)])
def test_a_follower_keeps_up_if_it_reaches_the_end_that_the_leader_had_at_its_last_fetch(
    offset: int, keeps_up: bool
) -> None:
    progress = fetched(5, 10)
    assert not progress.keeps_up, "one fetch does not show it"
    fetched(offset, 20, progress)
    assert (progress.keeps_up, progress.end_offset) == (keeps_up, offset)


def test_a_follower_that_lags_may_have_stopped_until_it_fetches() -> None:
    progress = fetched(10, 10)
    progress.sampled(10, 1000, 5, 900)
    progress.check_lag(1001 + MAX_LAG_MS, MAX_LAG_MS)
    assert progress.may_have_stopped
    fetched(10, 10, progress)
    assert not progress.may_have_stopped
