"""Deleted logs: their files are removed later, and a new log of the same name inherits nothing from them."""

import errno
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.remembered_offsets import RememberedOffsets
from quire.storage.flushing.log_flush import FlushPlan
from quire.storage.leader_epochs import read_epochs
from quire.storage.log import Log
from quire.storage.recovery.roll_mark import marked_offsets
from tests.storage.batches import SMALL_SEGMENTS, append_values, values_of
from tests.storage.directory.directory_world import TOPIC_ID, World, config_of
from tests.storage.loading import load_logs


def test_a_deleted_log_disappears_at_once_and_its_files_later(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    append_values(log, b"a")
    directory.delete_log("orders", 0)
    assert directory.logs == {}
    (folder,) = [name for name in world.disk.list_dir("data") if name.endswith("-delete")]
    assert folder.startswith("orders-0.")
    world.clock.run_for(59_999)
    world.jobs.run_all()
    assert world.disk.exists(f"data/{folder}")
    world.clock.run_for(1)
    world.jobs.run_all()
    assert not world.disk.exists(f"data/{folder}")


@pytest.mark.parametrize("code", [errno.ENOENT, errno.ENOTEMPTY])
def test_a_deleted_log_in_which_a_flush_still_renames_a_file_is_removed_later(world: World, code: int) -> None:
    directory = world.open()
    directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    directory.delete_log("orders", 0)
    world.disk.fail_when(lambda operation: operation.kind == "remove", code)
    world.clock.run_for(60_000)
    world.jobs.run_all()
    assert not world.failures
    world.clock.run_for(10_000)
    world.jobs.run_all()
    assert not any(name.startswith("orders") for name in world.disk.list_dir("data"))


def test_a_deleted_log_that_was_removed_by_hand_is_ignored(world: World) -> None:
    directory = world.open()
    directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    directory.delete_log("orders", 0)
    (folder,) = [name for name in world.disk.list_dir("data") if name.endswith("-delete")]
    world.disk.remove_tree(f"data/{folder}")
    world.clock.run_for(100_000)
    world.jobs.run_all()
    assert not world.failures


def test_a_topic_can_be_created_again_at_once(world: World) -> None:
    directory = world.open()
    for generation in range(3):
        log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=bytes([generation]) * 16)
        assert log.end_offset == 0
        append_values(log, b"a", b"b")
        directory.delete_log("orders", 0)
    assert len([name for name in world.disk.list_dir("data") if name.endswith("-delete")]) == 3
    directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
    assert directory.topic_ids["orders", 0] == TOPIC_ID


def test_a_new_log_inherits_nothing_from_a_deleted_one_of_the_same_name(world: World) -> None:
    directory = world.open()
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 5)
    log.delete_records_before(3)
    directory.checkpoint()
    world.jobs.run_all()
    directory.delete_log("orders", 0)
    again = world.killed()
    assert again.open_log("orders", 0, SMALL_SEGMENTS).start_offset == 0


@pytest.mark.parametrize("step", range(12))
def test_a_flush_of_a_deleted_log_changes_nothing_in_a_new_one_of_the_same_name(
    world: World, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every step of the flush's job, the event loop deletes the log and begins another one."""
    directory = world.start()

    def begin_and_roll(leader_epoch: int) -> Log:
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, b"a", leader_epoch=leader_epoch)
        log.flush()
        log.assign_epoch(leader_epoch + 1)
        log.roll(0)
        assert log.flushing
        return log

    steps = itertools.count()
    run = FlushPlan.run

    def begin_another() -> None:
        monkeypatch.undo()
        directory.delete_log("orders", 0)
        begin_and_roll(0)

    def interrupted(call: Callable[..., Any]) -> Callable[..., Any]:
        def interrupt(*args: Any, **options: Any) -> Any:
            if next(steps) == step:
                begin_another()
            return call(*args, **options)

        return interrupt

    def run_beside_the_loop(plan: FlushPlan) -> None:
        with monkeypatch.context() as job:
            for name in ("open", "exists", "rename", "remove", "sync_dir") if is_begun else ():
                job.setattr(world.disk, name, interrupted(getattr(world.disk, name)))
            run(plan)

    is_begun = False
    monkeypatch.setattr(FlushPlan, "run", run_beside_the_loop)
    old = begin_and_roll(5)
    is_begun = True
    while len(world.jobs) and directory.logs["orders", 0] is old:
        world.jobs.run_next()
    if directory.logs["orders", 0] is old:
        begin_another()
    assert marked_offsets(world.disk.list_dir("data/orders-0")) == [1]
    assert read_epochs(world.disk, "data/orders-0").entries == [(0, 0)]
    assert not world.failures


def test_segments_that_left_a_deleted_log_do_not_take_those_of_a_new_one_of_the_same_name_along(world: World) -> None:
    directory = world.start()
    delay_ms = SMALL_SEGMENTS.file_delete_delay_ms

    def begin_and_empty() -> None:
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, b"a")
        directory.start_over(log, 0)

    begin_and_empty()
    directory.delete_log("orders", 0)
    world.clock.run_for(delay_ms - 1)
    begin_and_empty()
    world.clock.run_for(2)
    world.jobs.run_all()
    assert f"{0:020d}.log.deleted" in world.disk.list_dir("data/orders-0")
    world.clock.run_for(delay_ms)
    world.jobs.run_all()
    assert f"{0:020d}.log.deleted" not in world.disk.list_dir("data/orders-0")


@pytest.mark.parametrize("ended", [World.killed, World.lost_power])
@pytest.mark.parametrize("taken_out", [LogDirectory.delete_log, LogDirectory.set_aside])
def test_no_crash_brings_a_deleted_logs_offsets_back_upon_a_new_one_of_the_same_name(
    world: World,
    ended: Callable[[World], LogDirectory],
    taken_out: Callable[[LogDirectory, str, int], object],
) -> None:
    directory = world.open()
    old = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(old, *[bytes(50)] * 10)
    directory.flush(old)
    directory.delete_records("orders", 0, 10, lambda: None)
    world.jobs.run_all()
    directory.checkpoint()
    world.jobs.run_all()
    taken_out(directory, "orders", 0)
    new = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(new, b"a", b"b")
    new.flush()
    again = ended(world)
    load_logs(again, world.jobs, config_of)
    found = again.logs["orders", 0]
    assert (found.start_offset, found.recovery_point, values_of(found)) == (0, 0, [b"a", b"b"])


def test_names_used_again_cost_one_write_of_the_checkpoints_however_many_they_are(world: World) -> None:
    directory = world.open()
    for partition in range(20):
        directory.open_log("orders", partition, SMALL_SEGMENTS)
    directory.checkpoint()
    world.jobs.run_all()
    for partition in range(20):
        directory.delete_log("orders", partition)
    operations = world.disk.operations
    directory.open_log("orders", 0, SMALL_SEGMENTS)
    first = world.disk.operations - operations
    directory.open_log("orders", 1, SMALL_SEGMENTS)
    second = world.disk.operations - operations - first
    directory.open_log("shipments", 1, SMALL_SEGMENTS)
    third = world.disk.operations - operations - first - second
    assert (first - second, second - third) == (2 * 6, 0), "two checkpoints, six operations each"


def test_deleting_ever_new_names_does_not_pile_them_up(world: World) -> None:
    remembered = RememberedOffsets(world.disk, world.jobs, "", {}, world.failures.append)
    for number in range(10_001):
        remembered.forget(("orders", number))
    operations = world.disk.operations
    for number in range(2):
        remembered.make_way_for(("shipments", number))
    assert world.disk.operations - operations == 2 * 6


def test_an_interrupted_deletion_is_completed_by_the_next_start(world: World) -> None:
    directory = world.open()
    directory.open_log("orders", 0, SMALL_SEGMENTS)
    directory.delete_log("orders", 0)
    again = world.killed()
    load_logs(again, world.jobs, config_of)
    world.jobs.run_all()
    assert again.logs == {}
    assert not any(name.endswith("-delete") for name in world.disk.list_dir("data"))
