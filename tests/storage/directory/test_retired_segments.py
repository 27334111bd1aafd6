"""Segments removed from a log: their files are deleted after a delay, and closing drops them."""

from tests.storage.batches import SMALL_SEGMENTS, append_values
from tests.storage.directory.directory_world import World


def test_closing_releases_retired_segments_that_wait_for_their_removal(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *(b"%d" % number for number in range(9)))
    assert log.read(0, 1000) is not None
    log.delete_records_before(5)
    directory.close()
    assert world.disk.open_paths() == []


def test_closing_releases_retired_segments_whose_removal_was_not_carried_out(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *(b"%d" % number for number in range(9)))
    world.jobs.run_all()
    log.delete_records_before(5)
    world.clock.run_for(60_000)
    assert len(world.jobs) == 1
    world.jobs.stop()
    directory.close()
    assert world.disk.open_paths() == []


def test_retired_segments_are_removed_after_their_delay(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 6)
    log.delete_records_before(5)
    assert any(name.endswith(".deleted") for name in world.disk.list_dir(log.path))
    world.clock.run_for(60_000)
    world.jobs.run_all()
    assert not any(name.endswith(".deleted") for name in world.disk.list_dir(log.path))
