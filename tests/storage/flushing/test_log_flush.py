"""What a flush makes durable, and what an outdated plan must not report as durable."""

import errno

import pytest

from quire.storage.leader_epochs import read_epochs
from quire.storage.log_config import LogConfig
from simulator.disk import DiskCall, SimDisk
from simulator.random import SimRandom
from tests.storage.batches import (
    FOLDER,
    NOW_MS,
    SMALL_SEGMENTS,
    append,
    append_values,
    batch,
    finish_flush,
    letters,
    marker,
    open_log,
    values_of,
)


def after_power_loss(disk: SimDisk) -> SimDisk:
    """The worst case: nothing survives that was not synced."""
    return disk.crash(NothingSurvives(0))


class NothingSurvives(SimRandom):
    def below(self, limit: int) -> int:
        return 0

    def chance(self, probability: float) -> bool:
        return False


def test_only_flushed_data_survives_power_loss(disk: SimDisk) -> None:
    log = open_log(disk, SMALL_SEGMENTS)
    append_values(log, *letters(5))
    log.flush()
    assert log.recovery_point == 5
    append_values(log, b"x")
    found = open_log(after_power_loss(disk), SMALL_SEGMENTS, recovery_point=5)
    assert values_of(found) == letters(5)
    assert found.epochs.entries == [(0, 0)]


def test_an_unflushed_log_loses_even_its_folder(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    assert not after_power_loss(disk).exists(FOLDER)


def test_rolls_on_a_full_disk_do_not_accumulate_files_to_sync(disk: SimDisk) -> None:
    log = open_log(disk, SMALL_SEGMENTS)
    append_values(log, *letters(2))
    new_segment = f"{FOLDER}/00000000000000000002.log"
    disk.fail_when(lambda operation: operation.path == new_segment, errno.ENOSPC, times=3)
    for _ in range(3):
        with pytest.raises(OSError, match="space"):
            append_values(log, b"x")
    plan = log.start_flush()
    assert plan is not None
    assert len(plan.paths) == 3, "two indexes and a snapshot"


def test_a_flush_up_to_a_segment_leaves_the_active_one_alone(disk: SimDisk) -> None:
    log = open_log(disk, SMALL_SEGMENTS)
    append_values(log, *letters(3))
    synced = watch_syncs(disk)
    plan = log.start_flush(up_to=2)
    assert plan is not None
    plan.run()
    finish_flush(log, plan)
    assert log.recovery_point == 2
    assert f"{FOLDER}/00000000000000000002.log" not in synced
    assert values_of(open_log(after_power_loss(disk), SMALL_SEGMENTS, recovery_point=2)) == letters(2)


def watch_syncs(disk: SimDisk) -> list[str]:
    synced: list[str] = []

    def note(operation: DiskCall) -> bool:
        if operation.kind == "sync":
            synced.append(operation.path)
        return False

    disk.fail_when(note)
    return synced


def test_a_repeated_flush_syncs_one_file_and_an_idle_one_none(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    log.flush()
    append_values(log, b"b")
    operations = disk.operations
    log.flush()
    assert disk.operations == operations + 1
    assert log.start_flush() is None


def test_indexes_and_snapshots_of_completed_segments_are_durable_with_them(disk: SimDisk) -> None:
    log = open_log(disk, SMALL_SEGMENTS)
    for sequence in range(5):
        append(log, batch(bytes(40), producer_id=3, producer_epoch=0, sequence=sequence))
    log.flush()
    names = after_power_loss(disk).list_dir(FOLDER)
    for base in (0, 2):
        assert f"{base:020d}.index" in names
        assert f"{base:020d}.timeindex" in names
    assert "00000000000000000002.snapshot" in names


def test_epochs_are_durable_before_the_recovery_point_passes_them(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a", leader_epoch=1)
    log.flush()
    append_values(log, b"b", leader_epoch=4)
    log.flush()
    assert read_epochs(after_power_loss(disk), FOLDER).entries == [(1, 0), (4, 1)]


def test_files_beside_the_log_are_durable_with_the_first_flush(disk: SimDisk) -> None:
    log = open_log(disk)
    beside = f"{FOLDER}/partition.metadata"
    disk.open(beside, create=True).pwritev([b"whose it is"], 0)
    log.sync_with_next_flush(beside)
    assert log.start_flush() is None, "it is worth no flush of its own"
    append_values(log, b"a")
    log.flush()
    assert after_power_loss(disk).read_file(beside) == b"whose it is"


def test_appends_during_a_flush_are_not_claimed_by_it(disk: SimDisk) -> None:
    log = open_log(disk, SMALL_SEGMENTS)
    append_values(log, *letters(2))
    plan = log.start_flush()
    assert plan is not None
    append_values(log, *letters(3))
    plan.run()
    finish_flush(log, plan)
    assert log.recovery_point == 2
    log.flush()
    assert log.recovery_point == 5
    assert values_of(open_log(after_power_loss(disk), SMALL_SEGMENTS, recovery_point=5)) == [*letters(2), *letters(3)]


def test_a_flush_that_began_before_a_truncation_claims_nothing(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, *letters(5))
    plan = log.start_flush()
    assert plan is not None
    plan.run()
    log.truncate_to(2)
    append_values(log, *letters(5))
    finish_flush(log, plan)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 7


def test_a_file_that_is_written_again_during_a_flush_is_durable_only_with_the_next(disk: SimDisk) -> None:
    """There was no room for the next segment; the active one was flushed, and took a small append before there was
    room."""
    config = LogConfig(segment_bytes=420, index_interval_bytes=100)
    log = open_log(disk, config)
    append(log, batch(bytes(50), producer_id=7, producer_epoch=0, sequence=0, transactional=True))
    append(log, batch(bytes(50), producer_id=8, producer_epoch=0, sequence=0, transactional=True))
    append(log, marker(7, aborts=True))
    disk.fail_when(lambda operation: operation.path.endswith("3.log"), errno.ENOSPC, times=1)
    with pytest.raises(OSError, match="space"):
        append_values(log, bytes(50))
    plan = log.start_flush()
    assert plan is not None
    plan.run()
    append(log, marker(8, aborts=True))
    append_values(log, bytes(50))
    finish_flush(log, plan)
    log.flush()
    assert [segment.base_offset for segment in log.segments] == [0, 4]
    found = open_log(after_power_loss(disk), config, recovery_point=log.recovery_point)
    assert [each.last_offset for each in found.aborted_transactions(0)] == [2, 3]


def test_segments_deleted_during_a_flush_do_not_disturb_it(disk: SimDisk) -> None:
    log = open_log(disk, SMALL_SEGMENTS)
    append_values(log, *letters(6))
    plan = log.start_flush()
    assert plan is not None
    log.delete_records_before(5)
    plan.run()
    finish_flush(log, plan)
    assert log.recovery_point == 6


def test_a_failed_flush_moves_nothing(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    disk.fail_when(lambda operation: operation.kind == "sync")
    with pytest.raises(OSError, match="Input/output error"):
        log.flush()
    assert log.recovery_point == 0
    assert not log.flushing


def test_after_a_process_died_the_next_one_flushes_what_it_left(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a", b"b")
    survivor = disk.kill()
    again = open_log(survivor)
    again.flush()
    assert values_of(open_log(after_power_loss(survivor), recovery_point=2)) == [b"a", b"b"]


def test_a_closed_log_survives_power_loss_whole(disk: SimDisk) -> None:
    log = open_log(disk, SMALL_SEGMENTS)
    for sequence in range(5):
        append(log, batch(bytes(40), producer_id=3, producer_epoch=0, sequence=sequence), now_ms=NOW_MS)
    log.close()
    again = open_log(after_power_loss(disk), SMALL_SEGMENTS, clean=True)
    assert again.end_offset == 5
    (producer,) = again.producers()
    assert producer.last_sequence == 4
    assert again.epochs.entries == [(0, 0)]


def test_files_written_by_a_clean_stop_survive_power_loss_though_the_log_was_flushed_before(disk: SimDisk) -> None:
    log = open_log(disk, SMALL_SEGMENTS)
    append(log, batch(bytes(40), producer_id=3, producer_epoch=0, sequence=0))
    log.flush()
    append(log, batch(bytes(40), producer_id=3, producer_epoch=0, sequence=1))
    log.close()
    after = after_power_loss(disk)
    written = ("00000000000000000002.snapshot", "00000000000000000000.index", "00000000000000000000.timeindex")
    assert [name for name in written if not after.exists(f"{FOLDER}/{name}")] == []
    (producer,) = open_log(after, SMALL_SEGMENTS, clean=True).producers()
    assert producer.last_sequence == 1


def test_a_file_that_appears_beside_a_flushed_log_is_durable_with_the_next_flush(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    log.flush()
    beside = f"{FOLDER}/partition.metadata"
    disk.open(beside, create=True).pwritev([b"whose it is"], 0)
    log.sync_with_next_flush(beside)
    append_values(log, b"b")
    log.flush()
    assert after_power_loss(disk).read_file(beside) == b"whose it is"


@pytest.mark.parametrize("during_flush", [False, True], ids=["flushed before the roll", "rolled during a flush"])
def test_a_segment_completed_at_the_recovery_point_keeps_its_aborted_transactions_and_times(during_flush: bool) -> None:
    for seed in range(50):
        disk = SimDisk()
        disk.make_dirs(FOLDER)
        disk.sync_dir("")
        log = open_log(disk)
        append(log, batch(b"first", timestamp=NOW_MS + 5))
        append(log, batch(b"aborted", producer_id=7, producer_epoch=0, sequence=0, transactional=True))
        append(log, marker(7, aborts=True))
        aborted, highest = log.aborted_transactions(0), log.find_max_timestamp()
        if during_flush:
            plan = log.start_flush()
            assert plan is not None
            plan.run()
            log.roll(NOW_MS)
            finish_flush(log, plan)
        else:
            log.flush()
            log.roll(NOW_MS)
        append_values(log, b"next")
        for _ in range(2):  # The files that the first start has rebuilt are not on disk either.
            disk = disk.crash(SimRandom(seed))
            again = open_log(disk, recovery_point=log.recovery_point)
            assert again.aborted_transactions(0) == aborted, f"seed {seed}"
            assert again.find_max_timestamp() == highest, f"seed {seed}"
        again.flush()
        assert not [name for name in disk.list_dir(FOLDER) if name.endswith(".tmp")], "it is on disk now"
