"""The unflushed writes of a killed process are flushed by the next start."""

import errno

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.storage.log_config import LogConfig
from tests.storage.batches import append_values
from tests.storage.directory.directory_world import World
from tests.storage.loading import load_logs


@pytest.mark.parametrize(("flush_messages", "on_disk"), [(1, 3), (3, 3), (4, 0)])
def test_the_remains_of_a_killed_process_are_flushed_before_use_if_the_topic_requires_it(
    world: World, flush_messages: int, on_disk: int
) -> None:
    append_values(world.start().open_log("orders", 0, LogConfig()), b"a", b"b", b"c")
    directory = world.killed()
    log = directory.open_log("orders", 0, LogConfig(flush_messages=flush_messages))
    directory.flush_before_use(log)
    assert (log.recovery_point, len(world.jobs)) == (on_disk, 0)


def test_the_remains_of_a_killed_process_in_many_logs_are_flushed_in_jobs(world: World) -> None:
    directory = world.start()
    for partition in range(3):
        append_values(directory.open_log("orders", partition, LogConfig()), b"a")
    append_values(directory.open_log("clicks", 0, LogConfig()), b"a")
    directory = world.killed()
    load_logs(directory, world.jobs, lambda topic: LogConfig(flush_messages=1) if topic == "orders" else LogConfig())
    told: list[str] = []
    directory.prepare_use(lambda: told.append("prepared"))
    assert (told, len(world.jobs)) == ([], 3)
    world.jobs.run_all()
    assert told == ["prepared"]
    assert {key: log.recovery_point for key, log in directory.logs.items()} == {
        ("clicks", 0): 0,
        ("orders", 0): 1,
        ("orders", 1): 1,
        ("orders", 2): 1,
    }


@pytest.mark.parametrize("is_full", [True, False])
def test_a_disk_that_does_not_flush_the_remains_of_a_kill_blocks_no_caller(world: World, is_full: bool) -> None:
    append_values(world.start().open_log("orders", 0, LogConfig()), b"a")
    directory = world.killed()
    load_logs(directory, world.jobs, lambda _: LogConfig(flush_messages=1))
    number = errno.ENOSPC if is_full else errno.EIO
    world.disk.fail_when(lambda operation: operation.path.endswith("leader-epoch-checkpoint.tmp"), number)
    told: list[str] = []
    directory.prepare_use(lambda: told.append("prepared"))
    world.jobs.run_all()
    assert (told, directory.failure is None) == (["prepared"], is_full)
    assert directory.logs["orders", 0].recovery_point == 0


def test_a_disk_that_fails_to_flush_what_was_left_goes_offline(world: World) -> None:
    append_values(world.start().open_log("orders", 0, LogConfig()), b"a")
    directory = world.killed()
    log = directory.open_log("orders", 0, LogConfig(flush_messages=1))
    world.disk.fail_when(lambda operation: operation.kind == "sync")
    with pytest.raises(ApiError) as refused:
        directory.flush_before_use(log)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(world.failures) == 1
