"""Transactions in a log: readers find the aborted ones, through rolls, truncations, crashes and damage."""

import pytest

from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.producers import producer_replay
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, append, batch, marker, open_log, read, replicate
from tests.storage.transactional_log import (
    ABORTED,
    CONFIG,
    ENDED,
    aborted,
    all_aborted,
    index_files,
    transactional,
    written,
)


def test_a_reader_learns_of_aborted_transactions_though_their_markers_are_in_later_segments(disk: SimDisk) -> None:
    log = written(disk)
    assert len(log.segments) > 3
    assert ABORTED[0] in aborted(log, 0)
    assert ABORTED[1] in aborted(log, 1)
    assert ABORTED[1] in aborted(log, 6), "which is over only with its marker"
    assert ABORTED[2] not in aborted(log, 0)
    assert aborted(log, 11) == [ABORTED[2]]
    assert all_aborted(log) == ABORTED


def test_a_reader_gets_no_more_aborted_transactions_than_the_slice_needs(disk: SimDisk) -> None:
    log = open_log(disk, LogConfig(index_interval_bytes=100))
    for sequence in range(50):
        append(log, transactional(1, sequence))
        append(log, marker(1, aborts=True))
    assert len(aborted(log, 0)) <= 3
    assert len(aborted(log, 40, max_bytes=1000)) <= 8
    assert len(aborted(log, 0, max_bytes=1 << 20)) == 50


def test_a_log_without_aborted_transactions_has_no_index_of_them(disk: SimDisk) -> None:
    log = open_log(disk, CONFIG)
    for sequence in range(9):
        append(log, transactional(1, sequence))
    append(log, marker(1, aborts=False))
    assert aborted(log, 0) == []
    log.close()
    assert index_files(disk) == {}


def test_a_follower_has_the_same_index(disk: SimDisk) -> None:
    leader = written(disk)
    follower = open_log(disk, CONFIG, folder="data/orders-1")
    offset = 0
    while (part := read(leader, offset)) is not None:
        info = replicate(follower, bytearray(part.read()))
        offset = info.last_offset + 1
    assert all_aborted(follower) == ABORTED
    assert follower.producer_state.first_open_transaction_offset is None


class TestUncommittedMarkers:
    """They hold the last stable offset back. Which markers do so follows from the log, not from its writer."""

    def test_a_leader_and_a_follower_have_the_same(self, disk: SimDisk) -> None:
        leader = written(disk)
        follower = open_log(disk, CONFIG, folder="data/orders-1")
        replicate_all(leader, follower)
        assert list(leader.uncommitted_markers.entries) == ENDED
        assert list(follower.uncommitted_markers.entries) == ENDED

    @pytest.mark.parametrize("clean", [True, False])
    @pytest.mark.parametrize("recovery_point", [0, 5, 13])
    def test_a_log_is_opened_with_those_from_the_high_watermark_on(
        self, disk: SimDisk, clean: bool, recovery_point: int
    ) -> None:
        written(disk).close()
        for high_watermark in range(15):
            again = open_log(disk, CONFIG, clean=clean, recovery_point=recovery_point, high_watermark=high_watermark)
            assert list(again.uncommitted_markers.entries) == [each for each in ENDED if each[0] >= high_watermark]
            again.close()

    def test_a_kill_leaves_what_the_log_has(self, disk: SimDisk) -> None:
        written(disk)
        assert list(open_log(disk.kill(), CONFIG, high_watermark=6).uncommitted_markers.entries) == ENDED[1:]

    def test_a_transaction_without_records_here_holds_nothing_back(self, disk: SimDisk) -> None:
        log = open_log(disk, CONFIG)
        append(log, batch())
        append(log, marker(1, aborts=True))
        assert not log.uncommitted_markers.entries
        log.close()
        assert not open_log(disk, CONFIG, high_watermark=0).uncommitted_markers.entries

    @pytest.mark.parametrize("offset", range(14))
    def test_a_truncated_marker_is_none_and_its_transaction_is_open_again(self, disk: SimDisk, offset: int) -> None:
        log = written(disk)
        log.truncate_to(offset)
        assert list(log.uncommitted_markers.entries) == [each for each in ENDED if each[0] < offset]
        open_at = log.producer_state.first_open_transaction_offset
        held_back = log.uncommitted_markers.hold_back(0)
        assert min(each for each in (open_at, held_back, offset) if each is not None) == 0

    def test_a_log_that_starts_over_elsewhere_has_none(self, disk: SimDisk) -> None:
        log = written(disk)
        log.truncate_fully_and_start_at(100)
        assert not log.uncommitted_markers.entries

    def test_a_log_without_markers_there_is_opened_without_its_producers(
        self, disk: SimDisk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = written(disk)
        append(log, batch())
        log.close()
        monkeypatch.setattr(producer_replay, "replay", None)
        assert not open_log(disk, CONFIG, clean=True, high_watermark=13).uncommitted_markers.entries


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_known_again_after_a_stop(disk: SimDisk, clean: bool) -> None:
    log = written(disk)
    append(log, transactional(2, 2))
    log.close()
    files = index_files(disk)
    assert sum(map(len, files.values())) == 34 * len(ABORTED)
    for recovery_point in (0, 5, 14):
        again = open_log(disk, CONFIG, clean=clean, recovery_point=recovery_point)
        assert all_aborted(again) == ABORTED
        assert again.producer_state.first_open_transaction_offset == 13
        again.close()
        assert index_files(disk) == files


@pytest.mark.parametrize("interval_bytes", [100, 1 << 20])
def test_a_clean_stop_has_the_index_on_disk_also_of_a_segment_without_any_other(
    disk: SimDisk, interval_bytes: int
) -> None:
    log = open_log(disk, LogConfig(index_interval_bytes=interval_bytes))
    append(log, transactional(1, 0))
    append(log, transactional(1, 1))
    append(log, marker(1, aborts=True))
    log.close()
    for seed in range(10):
        again = open_log(disk.crash(SimRandom(seed)), clean=True, recovery_point=3)
        assert all_aborted(again) == [AbortedTransaction(1, 0, 2, 3)]


def test_a_kill_before_anything_is_saved_loses_no_entry(disk: SimDisk) -> None:
    written(disk)
    assert all_aborted(open_log(disk.kill(), CONFIG)) == ABORTED


def test_truncation_takes_back_what_was_aborted_behind_it(disk: SimDisk) -> None:
    for offset in range(13):
        folder = f"data/orders-{offset}"
        log = open_log(disk, CONFIG, folder=folder)
        whole = written(disk)
        replicate_all(whole, log)
        log.truncate_to(offset)
        assert all_aborted(log) == [each for each in ABORTED if each.last_offset < offset]
        starts = {1: 0, 2: 1} if offset <= 5 else {2: 1} if offset <= 7 else {}
        if offset > 9:
            starts[1] = 9
        if 8 < offset <= 10:
            starts[3] = 8
        still_open = [start for start in starts.values() if start < offset]
        assert log.producer_state.first_open_transaction_offset == min(still_open, default=None)
        log.close()
        again = open_log(disk, CONFIG, folder=folder, clean=True)
        assert all_aborted(again) == [each for each in ABORTED if each.last_offset < offset]
        disk.remove_tree(FOLDER)
        disk.make_dirs(FOLDER)


def replicate_all(source: Log, target: Log) -> None:
    offset = source.start_offset
    while (part := read(source, offset)) is not None:
        offset = replicate(target, bytearray(part.read())).last_offset + 1


def test_an_index_goes_with_its_segment(disk: SimDisk) -> None:
    log = written(disk)
    log.roll(0)
    log.delete_records_before(13)
    assert index_files(disk) == {}
    log.close()
    assert open_log(disk, CONFIG, clean=True, log_start_offset=13).end_offset == 13
