"""A full disk is not a failure: writes are refused, and other work is retried until there is room."""

import errno
import logging
from collections.abc import Callable

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.storage.directory.checkpoints import read_offsets
from quire.storage.recovery.gap_mark import with_mark
from tests.storage.batches import SMALL_SEGMENTS, append_values, values_of
from tests.storage.directory.directory_world import TOPIC_ID, World


def full(world: World, kind: str, code: int = errno.ENOSPC, times: int = 1000) -> Callable[[], None]:
    """Until the returned function is called, operations of this kind find no room."""
    room = False
    world.disk.fail_when(lambda operation: operation.kind == kind and not room, code, times=times)

    def make_room() -> None:
        nonlocal room
        room = True

    return make_room


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EFBIG])
def test_checkpoints_are_written_when_there_is_room_again(world: World, code: int) -> None:
    directory = world.start()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    make_room = full(world, "write", code)
    for _ in range(3):
        directory.checkpoint()
        directory.checkpoint_high_watermarks({("orders", 0): 17})
        world.jobs.run_all()
    assert (world.failures, directory.failure) == ([], None)
    make_room()
    directory.checkpoint()
    directory.checkpoint_high_watermarks({("orders", 0): 17})
    world.jobs.run_all()
    assert directory.read_high_watermarks() == {("orders", 0): 17}
    assert read_offsets(world.disk, "data/recovery-point-offset-checkpoint") == with_mark({("orders", 0): 0})


def test_a_full_disk_is_logged_once_and_so_is_its_end(world: World, caplog: pytest.LogCaptureFixture) -> None:
    directory = world.start()
    full = OSError(errno.ENOSPC, "No space left on device")
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            directory.fail(full)
            directory.checkpoint()
            directory.fail(full)
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        for _ in range(3):
            directory.checkpoint()
        assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
        directory.fail(full)
        assert [record.levelname for record in caplog.records] == ["ERROR", "INFO", "ERROR"]


def test_a_flush_is_made_up_for_by_the_next(world: World) -> None:
    directory = world.start()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, b"a")
    make_room = full(world, "write")
    directory.flush(log)
    world.jobs.run_all()
    assert (world.failures, log.recovery_point) == ([], 0)
    make_room()
    directory.flush(log)
    world.jobs.run_all()
    assert log.recovery_point == 1


def test_a_flush_that_found_no_descriptor_is_made_up_for_by_the_next(world: World) -> None:
    directory = world.start()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, b"a")
    spare = full(world, "sync", errno.EMFILE)
    directory.flush(log)
    world.jobs.run_all()
    assert (world.failures, log.recovery_point) == ([], 0)
    spare()
    directory.flush(log)
    world.jobs.run_all()
    assert log.recovery_point == 1


def test_a_log_whose_sync_found_no_room_has_lost_what_it_held(world: World) -> None:
    directory = world.start()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, b"a")
    full(world, "sync", times=1)
    directory.flush(log)
    world.jobs.run_all()
    assert len(world.failures) == 1, "the system keeps no second copy to try again with"


def test_a_log_is_created_when_there_is_room(world: World) -> None:
    directory = world.start()
    for kind in ("make_dir", "create", "write"):
        make_room = full(world, kind)
        with pytest.raises(ApiError, match="is full") as caught:
            directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        make_room()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    assert (values_of(log), directory.topic_ids["orders", 0], directory.unopened) == ([], TOPIC_ID, {})
    assert world.failures == []


def test_a_log_that_could_not_be_deleted_stays_if_it_is_opened_again(world: World) -> None:
    """A replica was removed, and added again before there was room."""
    directory = world.start()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID), b"a")
    make_room = full(world, "rename")
    with pytest.raises(ApiError, match="is full"):
        directory.delete_log("orders", 0)
    log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    make_room()
    world.clock.run_for(30_000)
    assert directory.logs == {("orders", 0): log} and values_of(log) == [b"a"]


def test_a_log_is_deleted_when_there_is_room_for_its_new_name(world: World) -> None:
    directory = world.start()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID), b"a")
    make_room = full(world, "rename")
    for take_out in (directory.delete_log, directory.set_aside):
        with pytest.raises(ApiError, match="is full"):
            take_out("orders", 0)
    with pytest.raises(ApiError, match="another topic"):
        directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=bytes(16))
    world.clock.run_for(30_000)
    assert list(directory.logs) == [("orders", 0)]
    make_room()
    world.clock.run_for(10_000)
    assert directory.logs == {}
    log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=bytes(16))
    assert (log.end_offset, world.failures) == (0, [])


def test_a_stop_is_prepared_and_ends_but_leaves_no_mark(world: World) -> None:
    directory = world.start()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    full(world, "write")
    told: list[str] = []
    directory.prepare_close(lambda: told.append("prepared"))
    world.jobs.run_all()
    assert told == ["prepared"]
    with pytest.raises(ApiError, match="is full"):
        directory.close()
    assert world.disk.open_paths() == []
    assert world.open().clean_broker_epoch is None
