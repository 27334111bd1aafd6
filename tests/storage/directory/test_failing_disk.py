"""A failing disk takes its directory offline: it is reported once, and callers get a storage error."""

import errno
from collections.abc import Callable

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.storage.directory.log_directory import LogDirectory
from tests.storage.batches import SMALL_SEGMENTS, append_values, values_of
from tests.storage.directory.directory_world import World, config_of
from tests.storage.loading import load_logs


def failing(world: World, kind: str) -> None:
    world.disk.fail_when(lambda operation: operation.kind == kind, times=1000)


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("create", lambda directory: directory.open_log("orders", 1, SMALL_SEGMENTS)),
        ("rename", lambda directory: directory.delete_log("orders", 0)),
        ("truncate", lambda directory: directory.truncate([(directory.logs["orders", 0], 0)])),
        ("sync", lambda directory: directory.close()),
    ],
)
def test_a_failing_disk_is_reported_once_and_the_caller_gets_a_storage_error(
    world: World, kind: str, action: Callable[[LogDirectory], object]
) -> None:
    directory = world.open()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    failing(world, kind)
    for _ in range(2 if kind != "sync" else 1):
        with pytest.raises((ApiError, KeyError)) as caught:
            action(directory)
        if isinstance(caught.value, ApiError):
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(world.failures) == 1
    assert directory.failure is world.failures[0]


@pytest.mark.parametrize("kind", ["list", "read"])
def test_a_disk_that_fails_while_logs_are_loaded_is_reported_once_and_ends_the_loading(world: World, kind: str) -> None:
    for partition in range(3):
        append_values(world.start().open_log("orders", partition, SMALL_SEGMENTS), b"a")
        world.killed().release()
    directory = world.killed()
    failing(world, kind)
    load_logs(directory, world.jobs, config_of)
    assert len(world.failures) == 1
    assert directory.failure is world.failures[0]
    assert directory.logs == {}


def test_a_failing_job_is_reported_too(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, b"a")
    failing(world, "sync")
    directory.flush(log)
    directory.checkpoint()
    world.jobs.run_all()
    assert len(world.failures) == 1
    directory.checkpoint()
    directory.checkpoint_high_watermarks({})
    assert len(world.jobs) == 0


def test_closing_after_a_failure_leaves_no_mark_but_releases_the_directory(world: World) -> None:
    directory = world.open()
    append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
    directory.fail(OSError(errno.EIO, "broken"))
    directory.close()
    again = world.open()
    assert again.clean_broker_epoch is None
    load_logs(again, world.jobs, config_of)
    assert values_of(again.logs["orders", 0]) == [b"a"]
