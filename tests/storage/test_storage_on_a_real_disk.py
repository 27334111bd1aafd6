"""The same logs on real files: descriptors that are closed and opened again, locks, slices that outlive a deletion."""

import os
from pathlib import Path

import pytest

from quire.real.disk import RealDisk, RealFile
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.errors import DataDirectoryError
from quire.storage.log_config import LogConfig
from simulator.clock import SimClock
from simulator.random import SimRandom
from tests.storage.batches import append, append_values, batch, finish_flush, open_log, read_all, values_of
from tests.storage.loading import load_logs
from tests.storage.manual_jobs import ManualJobs

SMALL_SEGMENTS = LogConfig(segment_bytes=500, index_interval_bytes=100)


class World:
    def __init__(self, path: Path) -> None:
        self.path = str(path / "data")
        self.disk = RealDisk(open_files=8)
        self.jobs = ManualJobs()
        self.clock = SimClock()

    def open(self) -> LogDirectory:
        return LogDirectory.open(
            self.disk,
            self.path,
            clock=self.clock,
            jobs=self.jobs,
            random=SimRandom(1),
            on_failure=lambda directory, error: pytest.fail(str(error)),
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_many_logs_live_with_few_descriptors_through_stops_and_starts(world: World) -> None:
    expected: dict[tuple[str, int], list[bytes]] = {}
    for generation in range(3):
        directory = world.open()
        load_logs(directory, world.jobs, lambda topic: SMALL_SEGMENTS)
        for partition in range(20):
            log = directory.open_log("orders", partition, SMALL_SEGMENTS, topic_id=bytes(16))
            values = [f"{generation} {partition} {number}".encode() * 5 for number in range(15)]
            append_values(log, *values)
            expected.setdefault(("orders", partition), []).extend(values)
        assert {key: values_of(log) for key, log in directory.logs.items()} == expected
        assert world.disk.descriptors <= 10
        directory.prepare_close(lambda: None)
        world.jobs.run_all()
        directory.close()
    assert world.disk.descriptors == 0


def test_after_a_kill_the_log_has_all_written_records(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    for sequence in range(30):
        append(log, batch(bytes(40), producer_id=4, producer_epoch=0, sequence=sequence), leader_epoch=sequence // 7)
    before = read_all(log), log.epochs.entries
    again = open_log(RealDisk(), SMALL_SEGMENTS, folder=log.path)
    assert (read_all(again), again.epochs.entries) == before
    (producer,) = again.producers()
    assert producer.last_sequence == 29


def test_a_second_process_is_kept_out(world: World) -> None:
    first = world.open()
    with pytest.raises(DataDirectoryError, match="another process"):
        LogDirectory.open(
            RealDisk(),
            world.path,
            clock=world.clock,
            jobs=world.jobs,
            random=SimRandom(2),
            on_failure=lambda directory, error: None,
        )
    first.close()
    world.open().close()


def test_a_slice_in_transit_outlives_the_deletion_of_its_segment(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 20)
    part = log.read(0, 1 << 20)
    assert part is not None
    before = part.read()
    log.delete_records_before(15)
    assert part.read() == before
    world.clock.run_for(60_000)
    world.jobs.run_all()
    assert [name for name in world.disk.list_dir(log.path) if name.endswith(".deleted")] == []
    directory.close()


def test_a_deleted_log_leaves_nothing_behind(world: World) -> None:
    directory = world.open()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), *[bytes(50)] * 20)
    directory.delete_log("orders", 0)
    world.clock.run_for(60_000)
    world.jobs.run_all()
    assert not any(name.startswith("orders") for name in world.disk.list_dir(world.path))
    directory.close()


def test_retired_files_that_another_job_removes_at_the_same_moment_are_gone_and_that_is_all(tmp_path: Path) -> None:
    class AnotherIsFaster(RealDisk):
        def remove(self, path: str) -> None:
            super().remove(path)
            if path.endswith(".deleted"):
                super().remove(path)

    log = open_log(AnotherIsFaster(), SMALL_SEGMENTS, folder=f"{tmp_path}/orders-0")
    append_values(log, *[b"x" * 100] * 10)
    log.delete_records_before(log.segments[2].base_offset)
    assert not [name for name in os.listdir(tmp_path / "orders-0") if name.endswith(".deleted")]


def test_a_flush_passes_over_an_index_whose_segment_is_deleted_while_it_is_being_opened(tmp_path: Path) -> None:
    class RenamedMeanwhile(RealDisk):
        def open(self, path: str, *, create: bool = False) -> RealFile:
            file = super().open(path, create=create)
            if path.endswith("index") and not create:
                # Not through the disk: the event loop did it before this file was opened.
                os.rename(path, f"{path}.deleted")
            return file

    log = open_log(RenamedMeanwhile(), SMALL_SEGMENTS, folder=f"{tmp_path}/orders-0")
    append_values(log, *[b"x" * 100] * 10)
    plan = log.start_flush()
    assert plan is not None
    assert any(path.endswith(".index") for path in plan.paths)
    plan.run()
    finish_flush(log, plan)
    assert log.recovery_point == 10
