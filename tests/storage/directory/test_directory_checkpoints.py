"""What a directory stores about its logs: recovery points, start offsets and high watermarks."""

import logging

import pytest

from quire.storage.directory.registration_mark import Registration
from quire.storage.scanning.batch_scan import DamagedBatchError
from tests.storage.batches import SMALL_SEGMENTS, append, append_values, batch, marker, read, values_of
from tests.storage.directory.directory_world import World, config_of
from tests.storage.loading import load_logs


def test_recovery_points_follow_flushes_and_limit_the_scan(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 3)
    told: list[int] = []
    directory.flush(log, lambda: told.append(log.recovery_point))
    world.jobs.run_all()
    directory.checkpoint()
    world.jobs.run_all()
    assert told == [3]
    assert world.disk.read_file("data/recovery-point-offset-checkpoint") == b"0\n1\norders 0 3\n"
    again = world.killed()
    load_logs(again, world.jobs, config_of)
    assert again.logs["orders", 0].recovery_point == 3


def test_a_rolled_segment_is_flushed_by_itself(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 5)
    world.jobs.run_all()
    assert log.recovery_point == 4, "and the active one is left alone"


def test_log_start_offsets_are_remembered(world: World) -> None:
    directory = world.open()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), *[bytes(50)] * 3)
    append_values(directory.open_log("orders", 1, SMALL_SEGMENTS), b"a")
    directory.logs["orders", 0].delete_records_before(1)
    directory.checkpoint()
    world.jobs.run_all()
    assert world.disk.read_file("data/log-start-offset-checkpoint") == b"0\n1\norders 0 1\n"
    again = world.killed()
    load_logs(again, world.jobs, config_of)
    assert again.logs["orders", 0].start_offset == 1


def test_high_watermarks_are_remembered(world: World) -> None:
    directory = world.open()
    directory.checkpoint_high_watermarks({("orders", 0): 17})
    world.jobs.run_all()
    assert world.disk.read_file("data/replication-offset-checkpoint") == b"0\n1\norders 0 17\n"
    assert world.killed().read_high_watermarks() == {("orders", 0): 17}


@pytest.mark.parametrize("killed", [True, False], ids=["kill", "power loss"])
def test_damage_below_the_high_watermark_ends_a_log_only_if_a_power_loss_may_have_caused_it(
    world: World, killed: bool
) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS._replace(segment_bytes=1 << 20))
    append_values(log, b"a", b"b", b"c")
    directory.registration.write(Registration(5))
    directory.checkpoint_high_watermarks({("orders", 0): 3})
    world.jobs.run_all()
    directory.flush(log)  # so that a power loss keeps the records; the checkpoint does not know of the flush
    world.jobs.run_all()
    file = world.disk.open("data/orders-0/00000000000000000000.log")
    position = log.segments[0].size // 3
    file.pwritev([b"\xff"], position + 65)
    file.sync()
    again = world.killed() if killed else world.lost_power()
    load_logs(again, world.jobs, config_of)
    log = again.logs["orders", 0]
    assert log.end_offset == (3 if killed else 1)
    assert again.registration.is_void is not killed, "after a loss the broker may not report its last registration"
    if killed:
        assert read(log, 2) is not None
        with pytest.raises(DamagedBatchError):
            read(log, 1)


def test_a_truncation_takes_high_watermarks_back_before_other_records_are_appended(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 3)
    directory.checkpoint_high_watermarks({("orders", 0): 3, ("orders", 1): 5})
    world.jobs.run_all()
    directory.truncate([(log, 1)])
    append_values(log, *[bytes(50)] * 3)
    assert world.killed().read_high_watermarks() == {("orders", 0): 1, ("orders", 1): 5}


def test_a_log_that_ends_before_its_high_watermark_takes_it_back_when_it_is_loaded(world: World) -> None:
    directory = world.open()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), *[bytes(50)] * 3)
    directory.checkpoint_high_watermarks({("orders", 0): 4})
    world.jobs.run_all()
    again = world.killed()
    load_logs(again, world.jobs, config_of)
    append_values(again.logs["orders", 0], b"another")
    assert world.killed().read_high_watermarks() == {("orders", 0): 3}


def test_a_new_log_does_not_get_the_high_watermark_of_a_deleted_one(world: World) -> None:
    directory = world.open()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), *[bytes(50)] * 3)
    directory.checkpoint_high_watermarks({("orders", 0): 3, ("orders", 1): 5})
    world.jobs.run_all()
    directory.delete_log("orders", 0)
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    assert world.killed().read_high_watermarks() == {("orders", 1): 5}


@pytest.mark.parametrize("high_watermark", [0, 3, 4])
def test_a_log_is_loaded_with_the_markers_that_are_not_below_its_high_watermark(
    world: World, high_watermark: int
) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    for sequence in range(2):
        append(log, batch(b"a", producer_id=1, producer_epoch=0, sequence=sequence, transactional=True))
        append(log, marker(1, aborts=False))
    directory.checkpoint_high_watermarks({("orders", 0): high_watermark})
    world.jobs.run_all()
    again = world.killed()
    load_logs(again, world.jobs, config_of)
    markers = list(again.logs["orders", 0].uncommitted_markers.entries)
    assert markers == [each for each in [(1, 0), (3, 2)] if each[0] >= high_watermark]


def test_entries_of_logs_not_opened_yet_are_kept(world: World) -> None:
    directory = world.open()
    for partition in range(2):
        append_values(directory.open_log("orders", partition, SMALL_SEGMENTS), b"a")
    directory.close()
    again = world.open()
    again.open_log("orders", 1, SMALL_SEGMENTS)
    again.checkpoint()
    world.jobs.run_all()
    assert world.disk.read_file("data/recovery-point-offset-checkpoint") == b"0\n2\norders 0 1\norders 1 1\n"


def test_a_truncation_is_in_the_checkpoint_before_anything_else_happens(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 5)
    directory.flush(log)
    world.jobs.run_all()
    directory.checkpoint()
    directory.truncate([(log, 3)])
    assert world.disk.read_file("data/recovery-point-offset-checkpoint") == b"0\n1\norders 0 2\n"
    world.jobs.run_all()
    assert world.disk.read_file("data/recovery-point-offset-checkpoint") == b"0\n1\norders 0 2\n"
    assert log.end_offset == 3


def test_a_malformed_checkpoint_causes_a_longer_scan(world: World, caplog: pytest.LogCaptureFixture) -> None:
    directory = world.open()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    world.disk.open("data/recovery-point-offset-checkpoint", create=True).pwritev([b"rubbish"], 0)
    with caplog.at_level(logging.WARNING):
        again = world.killed()
    assert "rubbish" in caplog.text or "recovery-point-offset-checkpoint" in caplog.text
    load_logs(again, world.jobs, config_of)
    assert values_of(again.logs["orders", 0]) == [b"a"]
