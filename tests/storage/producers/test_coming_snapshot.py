"""The snapshot of many producers: the event loop creates the file, and the job of a flush writes it."""

import pytest

from quire.storage.log import Log
from quire.storage.producers import producer_snapshot
from quire.storage.producers.producer_snapshot import from_bytes
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, NOW_MS, append, batch, finish_flush, open_log

SNAPSHOT = f"{FOLDER}/{3:020d}.snapshot"


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_snapshot, "AT_ONCE_MAX", 2)


def write(log: Log, producer_id: int, sequence: int) -> None:
    append(log, batch(b"v", producer_id=producer_id, producer_epoch=0, sequence=sequence))


def rolled(disk: SimDisk) -> Log:
    """A log with three producers in its first segment, and one of them in the second."""
    log = open_log(disk)
    for producer_id in range(3):
        write(log, producer_id, 0)
    log.roll(NOW_MS)
    write(log, 0, 1)
    return log


def sequences(log: Log) -> dict[int, int]:
    return {each.producer_id: each.last_sequence for each in log.producers()}


def test_a_roll_does_not_write_it_and_the_next_flush_does(disk: SimDisk) -> None:
    log = rolled(disk)
    assert disk.file_size(SNAPSHOT) == 0
    log.flush()
    crashed = disk.crash(SimRandom(1))
    assert {each.producer_id: each.last_sequence for each in from_bytes(crashed.read_file(SNAPSHOT))} == {
        0: 0,
        1: 0,
        2: 0,
    }
    assert sequences(open_log(crashed, recovery_point=log.recovery_point)) == {0: 1, 1: 0, 2: 0}


def test_few_producers_are_written_by_the_roll(disk: SimDisk) -> None:
    log = open_log(disk)
    write(log, 0, 0)
    log.roll(NOW_MS)
    assert disk.file_size(f"{FOLDER}/{1:020d}.snapshot") > 0


@pytest.mark.parametrize("seed", range(10))
def test_no_crash_before_that_loses_a_producer(disk: SimDisk, seed: int) -> None:
    rolled(disk)
    assert set(sequences(open_log(disk.kill()))) == {0, 1, 2}
    found = open_log(disk.crash(SimRandom(seed)))
    assert set(sequences(found)) == set(range(min(found.end_offset, 3)))


def test_it_is_used_before_it_is_written(disk: SimDisk) -> None:
    log = rolled(disk)
    log.truncate_to(3)
    assert sequences(log) == {0: 0, 1: 0, 2: 0}
    write(log, 0, 1)
    log.flush()
    assert from_bytes(disk.read_file(SNAPSHOT)).get(0) is not None


def test_a_snapshot_removed_while_a_job_writes_it_does_not_exist_afterwards(disk: SimDisk) -> None:
    log = rolled(disk)
    plan = log.start_flush()
    assert plan is not None
    log.truncate_to(2)
    plan.run()
    finish_flush(log, plan)
    assert not disk.exists(SNAPSHOT)
    assert sequences(log) == {0: 0, 1: 0}


def test_a_clean_stop_writes_it_and_leaves_no_file_open(disk: SimDisk) -> None:
    log = rolled(disk)
    log.close()
    assert disk.open_paths() == []
    assert sequences(open_log(disk, clean=True)) == {0: 1, 1: 0, 2: 0}


def test_a_log_that_is_closed_without_a_flush_leaves_no_file_open(disk: SimDisk) -> None:
    rolled(disk).close_files()
    assert disk.open_paths() == []
