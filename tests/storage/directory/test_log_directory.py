"""A data directory through its life: locked, formatted, filled, stopped, killed, failed."""

import errno
import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.storage.directory.checkpoints import read_offsets
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.meta_properties import MetaProperties
from quire.storage.directory.remembered_offsets import RememberedOffsets
from quire.storage.errors import DataDirectoryError
from quire.storage.flushing.log_flush import FlushPlan
from quire.storage.leader_epochs import read_epochs
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.recovery.gap_mark import with_mark
from quire.storage.recovery.roll_mark import marked_offsets
from simulator.clock import SimClock
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.batches import SMALL_SEGMENTS, append, append_values, batch, values_of
from tests.storage.loading import load_logs
from tests.storage.manual_jobs import ManualJobs

META = MetaProperties("3Db5QLSqSZieL3rJBUUegA", 7, uuids.from_text("kYDlrdgMTVuWpIoDzcXjOw"))
TOPIC_ID = uuids.from_text("AAAAAAAAAAAAAAAAAAAAEQ")


class World:
    """A disk and the process that uses it; `restart` begins the next process on the same disk."""

    def __init__(self) -> None:
        self.disk = SimDisk()
        self.clock = SimClock()
        self.jobs = ManualJobs()
        self.failures: list[Exception] = []

    def open(self) -> LogDirectory:
        return LogDirectory.open(
            self.disk,
            "data",
            clock=self.clock,
            jobs=self.jobs,
            random=SimRandom(1),
            on_failure=lambda directory, error: self.failures.append(error),
        )

    def start(self) -> LogDirectory:
        directory = self.open()
        load_logs(directory, self.jobs, config_of)
        return directory

    def killed(self) -> LogDirectory:
        self.disk = self.disk.kill()
        self.jobs = ManualJobs()
        return self.open()

    def lost_power(self) -> LogDirectory:
        self.disk = self.disk.crash(SimRandom(3))
        self.jobs = ManualJobs()
        return self.open()


def open_at(disk: SimDisk, path: str) -> LogDirectory:
    return LogDirectory.open(
        disk,
        path,
        clock=SimClock(),
        jobs=ManualJobs(),
        random=SimRandom(1),
        on_failure=lambda _directory, error: pytest.fail(str(error)),
    )


@pytest.fixture
def world() -> World:
    return World()


def config_of(topic: str) -> LogConfig:
    return SMALL_SEGMENTS


class TestOwnership:
    def test_only_one_process_may_use_it(self, world: World) -> None:
        first = world.open()
        with pytest.raises(DataDirectoryError, match="another process"):
            world.open()
        first.close()
        world.open()

    def test_a_directory_that_cannot_be_created_is_refused(self, world: World) -> None:
        world.disk.fail_when(lambda operation: operation.kind == "make_dir", errno.EROFS)
        with pytest.raises(DataDirectoryError, match=r"log\.dirs"):
            world.open()

    def test_formatting_says_whose_it_is_and_lasts(self, world: World) -> None:
        directory = world.open()
        assert directory.meta is None
        directory.format(META)
        assert world.lost_power().meta == META

    @pytest.mark.parametrize("killed_at", range(1, 8))
    @pytest.mark.parametrize("seed", range(5))
    def test_a_start_that_was_killed_while_creating_folders_takes_nothing_from_the_next(
        self, killed_at: int, seed: int
    ) -> None:
        disk = SimDisk(crash_at=killed_at)
        with suppress(Crashed):
            open_at(disk, "srv/quire/data").format(META)
        disk = disk.kill()
        open_at(disk, "srv/quire/data").format(META)
        assert open_at(disk.crash(SimRandom(seed)), "srv/quire/data").meta == META

    def test_formatting_again_must_agree(self, world: World) -> None:
        directory = world.open()
        directory.format(META)
        directory.format(MetaProperties(META.cluster_id, 7, bytes(16)))
        assert directory.meta == META
        with pytest.raises(DataDirectoryError, match="belongs to node 7"):
            directory.format(MetaProperties(META.cluster_id, 8, META.directory_id))


class TestLogs:
    def test_logs_and_their_topic_ids_are_found_again(self, world: World) -> None:
        directory = world.start()
        for partition in range(3):
            log = directory.open_log("orders", partition, SMALL_SEGMENTS, topic_id=TOPIC_ID)
            append_values(log, b"a", bytes([partition]))
        directory.close(broker_epoch=12)
        again = world.open()
        assert again.clean_broker_epoch == 12
        load_logs(again, world.jobs, config_of)
        assert list(again.logs) == [("orders", 0), ("orders", 1), ("orders", 2)]
        assert again.topic_ids[("orders", 1)] == TOPIC_ID
        assert values_of(again.logs["orders", 2]) == [b"a", b"\x02"]

    def test_opening_an_open_log_gives_the_same_one(self, world: World) -> None:
        directory = world.open()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        assert directory.open_log("orders", 0, LogConfig()) is log

    def test_a_missing_topic_id_is_written_when_it_is_known(self, world: World) -> None:
        directory = world.open()
        directory.open_log("orders", 0, SMALL_SEGMENTS)
        assert directory.topic_ids["orders", 0] is None
        again = world.killed()
        again.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        assert again.topic_ids["orders", 0] == TOPIC_ID
        third = world.killed()
        with pytest.raises(ApiError, match="another topic"):
            third.open_log("orders", 0, SMALL_SEGMENTS, topic_id=bytes(16))
        assert third.topic_ids["orders", 0] == TOPIC_ID, "a folder does not change hands"

    def test_a_lost_topic_id_is_written_again_when_the_log_is_open_already(self, world: World) -> None:
        directory = world.start()
        directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        directory.close()
        world.disk.remove("data/orders-0/partition.metadata")
        again = world.start()
        assert again.topic_ids["orders", 0] is None
        again.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        again.close()
        assert world.lost_power().open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        assert world.disk.exists("data/orders-0/partition.metadata")

    def test_the_metadata_log_is_left_to_its_owner(self, world: World) -> None:
        directory = world.open()
        directory.open_log("__cluster_metadata", 0, SMALL_SEGMENTS)
        directory.open_log("orders", 0, SMALL_SEGMENTS)
        directory.close()
        again = world.open()
        load_logs(again, world.jobs, config_of)
        assert list(again.logs) == [("orders", 0)]

    def test_other_folders_and_files_are_left_alone(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        world.disk.make_dirs("data/lost+found")
        world.disk.open("data/notes.txt", create=True)
        directory = world.open()
        with caplog.at_level(logging.WARNING):
            load_logs(directory, world.jobs, config_of)
        assert "lost+found" in caplog.text and "notes.txt" not in caplog.text
        world.jobs.run_all()
        directory.close()
        assert {"lost+found", "notes.txt"} < set(world.disk.list_dir("data"))

    def test_a_deleted_log_is_gone_at_once_and_its_files_a_while_later(self, world: World) -> None:
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
    def test_a_deleted_log_in_which_a_flush_still_renames_a_file_is_removed_later(
        self, world: World, code: int
    ) -> None:
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

    def test_a_deleted_log_that_somebody_removes_by_hand_is_not_missed(self, world: World) -> None:
        directory = world.open()
        directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        directory.delete_log("orders", 0)
        (folder,) = [name for name in world.disk.list_dir("data") if name.endswith("-delete")]
        world.disk.remove_tree(f"data/{folder}")
        world.clock.run_for(100_000)
        world.jobs.run_all()
        assert not world.failures

    def test_a_topic_can_be_created_again_at_once(self, world: World) -> None:
        directory = world.open()
        for generation in range(3):
            log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=bytes([generation]) * 16)
            assert log.end_offset == 0
            append_values(log, b"a", b"b")
            directory.delete_log("orders", 0)
        assert len([name for name in world.disk.list_dir("data") if name.endswith("-delete")]) == 3
        directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        assert directory.topic_ids["orders", 0] == TOPIC_ID

    def test_a_new_log_inherits_nothing_from_a_deleted_one_of_the_same_name(self, world: World) -> None:
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
        self, world: World, step: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever the job of the flush is about to do when the event loop deletes the log and begins another."""
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

    def test_segments_that_left_a_deleted_log_do_not_take_those_of_a_new_one_of_the_same_name_along(
        self, world: World
    ) -> None:
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
        self,
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

    def test_names_used_again_cost_one_write_of_the_checkpoints_however_many_they_are(self, world: World) -> None:
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

    def test_deleting_ever_new_names_does_not_pile_them_up(self, world: World) -> None:
        remembered = RememberedOffsets(world.disk, world.jobs, "", {}, world.failures.append)
        for number in range(10_001):
            remembered.forget(("orders", number))
        operations = world.disk.operations
        for number in range(2):
            remembered.make_way_for(("shipments", number))
        assert world.disk.operations - operations == 2 * 6

    def test_what_was_being_deleted_is_removed_by_the_next_start(self, world: World) -> None:
        directory = world.open()
        directory.open_log("orders", 0, SMALL_SEGMENTS)
        directory.delete_log("orders", 0)
        again = world.killed()
        load_logs(again, world.jobs, config_of)
        world.jobs.run_all()
        assert again.logs == {}
        assert not any(name.endswith("-delete") for name in world.disk.list_dir("data"))

    def test_a_log_starts_later_only_when_no_crash_can_take_that_back(self, world: World) -> None:
        directory = world.open()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, b"a", b"b", b"c")
        log.flush()
        done: list[int] = []
        directory.delete_records("orders", 0, 2, lambda: done.append(log.start_offset))
        directory.delete_records("orders", 0, 1, lambda: done.append(log.start_offset))
        assert (log.start_offset, done) == (0, [])
        world.jobs.run_all()
        assert done == [2, 2]
        assert world.lost_power().open_log("orders", 0, SMALL_SEGMENTS).start_offset == 2

    def test_a_log_that_cannot_be_cut_takes_its_directory_offline(self, world: World) -> None:
        directory = world.open()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, *[bytes(50)] * 6)
        world.disk.fail_when(lambda operation: operation.kind == "rename" and operation.path.endswith(".log"))
        directory.delete_records("orders", 0, 5, lambda: pytest.fail("nothing was deleted"))
        world.jobs.run_all()
        assert len(world.failures) == 1

    def test_closing_lets_go_of_retired_segments_that_wait_for_their_removal(self, world: World) -> None:
        directory = world.open()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, *(b"%d" % number for number in range(9)))
        assert log.read(0, 1000) is not None
        log.delete_records_before(5)
        directory.close()
        assert world.disk.open_paths() == []

    def test_closing_lets_go_of_retired_segments_whose_removal_was_not_carried_out_any_more(self, world: World) -> None:
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

    def test_retired_segments_are_removed_after_their_delay(self, world: World) -> None:
        directory = world.open()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, *[bytes(50)] * 6)
        log.delete_records_before(5)
        assert any(name.endswith(".deleted") for name in world.disk.list_dir(log.path))
        world.clock.run_for(60_000)
        world.jobs.run_all()
        assert not any(name.endswith(".deleted") for name in world.disk.list_dir(log.path))


class TestStopping:
    def test_the_mark_is_there_only_between_a_clean_stop_and_the_next_start(self, world: World) -> None:
        directory = world.start()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
        assert ".kafka_cleanshutdown" not in world.disk.list_dir("data")
        directory.close(broker_epoch=3)
        assert ".kafka_cleanshutdown" in world.disk.list_dir("data")
        again = world.open()
        load_logs(again, world.jobs, config_of)
        assert ".kafka_cleanshutdown" not in world.disk.list_dir("data")
        assert world.lost_power().clean_broker_epoch is None

    def test_after_a_kill_logs_are_scanned_and_cut(self, world: World) -> None:
        directory = world.open()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, b"a", b"b")
        file = world.disk.open(f"{log.path}/{0:020d}.log")
        file.truncate(file.size() - 1)
        again = world.killed()
        load_logs(again, world.jobs, config_of)
        assert values_of(again.logs["orders", 0]) == [b"a"]

    def test_a_stop_before_the_logs_were_opened_leaves_everything_as_it_was(self, world: World) -> None:
        directory = world.start()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a", b"b")
        killed = world.killed()
        operations = world.disk.operations
        killed.close(broker_epoch=4)
        assert world.disk.operations == operations
        assert world.open().clean_broker_epoch is None

        world.killed().close()
        world.start().close(broker_epoch=5)
        world.open().close(broker_epoch=6)
        assert world.open().clean_broker_epoch == 5, "and a mark stays that of the run that had the logs"

    def test_a_log_that_cannot_be_opened_keeps_the_mark_away_and_the_others_open(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        directory = world.start()
        for partition in range(3):
            append_values(directory.open_log("orders", partition, SMALL_SEGMENTS), b"a")
        file = world.disk.open("data/orders-1/00000000000000000000.log")
        file.pwritev([b"torn"], file.size())
        again = world.killed()
        world.disk.fail_when(lambda operation: operation.kind == "truncate", errno.ENOSPC)
        with caplog.at_level(logging.ERROR):
            load_logs(again, world.jobs, config_of)
        assert list(again.logs) == [("orders", 0), ("orders", 2)]
        assert list(again.unopened) == [("orders", 1)]
        assert "orders-1 in data cannot be opened" in caplog.text
        again.close()
        third = world.open()
        assert third.clean_broker_epoch is None
        load_logs(third, world.jobs, config_of)
        assert values_of(third.logs["orders", 1]) == [b"a"]

    def test_a_clean_stop_survives_power_loss(self, world: World) -> None:
        directory = world.start()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        append(log, batch(b"a", producer_id=5, producer_epoch=0, sequence=0), leader_epoch=4)
        directory.close(broker_epoch=3)
        again = world.lost_power()
        assert again.clean_broker_epoch == 3
        load_logs(again, world.jobs, config_of)
        log = again.logs["orders", 0]
        assert (values_of(log), log.epochs.entries, len(log.producers())) == ([b"a"], [(4, 0)], 1)
        assert again.topic_ids["orders", 0] == TOPIC_ID

    def test_flushing_before_the_stop_leaves_the_stop_little_to_do(self, world: World) -> None:
        directory = world.start()
        for partition in range(3):
            log = directory.open_log("orders", partition, SMALL_SEGMENTS)
            append(log, batch(b"a", producer_id=5, producer_epoch=0, sequence=0))
        told: list[str] = []
        directory.prepare_close(lambda: told.append("prepared"))
        assert told == []
        world.jobs.run_all()
        assert told == ["prepared"]
        operations = world.disk.operations
        directory.close()
        assert world.disk.operations - operations == 3 * 6, "two checkpoints and the mark, six operations each"
        again = world.lost_power()
        load_logs(again, world.jobs, config_of)
        assert [len(log.producers()) for log in again.logs.values()] == [1, 1, 1]

    def test_preparing_ends_at_once_without_logs_and_when_the_disk_fails(self, world: World) -> None:
        directory = world.open()
        told: list[str] = []
        directory.prepare_close(lambda: told.append("prepared"))
        assert told == ["prepared"]
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
        world.disk.fail_when(lambda operation: operation.kind == "sync")
        directory.prepare_close(lambda: told.append("prepared"))
        world.jobs.run_all()
        assert told == ["prepared", "prepared"]
        directory.prepare_close(lambda: told.append("prepared"))
        assert told == ["prepared"] * 3

    def test_no_file_stays_open(self, world: World) -> None:
        directory = world.open()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), *[bytes(50)] * 6)
        directory.close()
        assert world.disk.open_paths() == []


class TestCheckpoints:
    def test_recovery_points_follow_flushes_and_limit_the_scan(self, world: World) -> None:
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

    def test_a_rolled_segment_is_flushed_by_itself(self, world: World) -> None:
        directory = world.open()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, *[bytes(50)] * 5)
        world.jobs.run_all()
        assert log.recovery_point == 4, "and the active one is left alone"

    def test_log_start_offsets_are_remembered(self, world: World) -> None:
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

    def test_high_watermarks_are_remembered(self, world: World) -> None:
        directory = world.open()
        directory.checkpoint_high_watermarks({("orders", 0): 17})
        world.jobs.run_all()
        assert world.disk.read_file("data/replication-offset-checkpoint") == b"0\n1\norders 0 17\n"
        assert world.killed().read_high_watermarks() == {("orders", 0): 17}

    def test_what_is_known_of_logs_not_opened_yet_is_kept(self, world: World) -> None:
        directory = world.open()
        for partition in range(2):
            append_values(directory.open_log("orders", partition, SMALL_SEGMENTS), b"a")
        directory.close()
        again = world.open()
        again.open_log("orders", 1, SMALL_SEGMENTS)
        again.checkpoint()
        world.jobs.run_all()
        assert world.disk.read_file("data/recovery-point-offset-checkpoint") == b"0\n2\norders 0 1\norders 1 1\n"

    def test_a_truncation_is_in_the_checkpoint_before_anything_else_happens(self, world: World) -> None:
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

    def test_a_checkpoint_that_makes_no_sense_means_a_longer_scan(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        directory = world.open()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
        world.disk.open("data/recovery-point-offset-checkpoint", create=True).pwritev([b"rubbish"], 0)
        with caplog.at_level(logging.WARNING):
            again = world.killed()
        assert "rubbish" in caplog.text or "recovery-point-offset-checkpoint" in caplog.text
        load_logs(again, world.jobs, config_of)
        assert values_of(again.logs["orders", 0]) == [b"a"]


class TestFailing:
    def failing(self, world: World, kind: str) -> None:
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
        self, world: World, kind: str, action: Callable[[LogDirectory], object]
    ) -> None:
        directory = world.open()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
        self.failing(world, kind)
        for _ in range(2 if kind != "sync" else 1):
            with pytest.raises((ApiError, KeyError)) as caught:
                action(directory)
            if isinstance(caught.value, ApiError):
                assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert len(world.failures) == 1
        assert directory.failure is world.failures[0]

    @pytest.mark.parametrize("kind", ["list", "read"])
    def test_a_disk_that_fails_while_logs_are_loaded_is_reported_once_and_ends_the_loading(
        self, world: World, kind: str
    ) -> None:
        for partition in range(3):
            append_values(world.start().open_log("orders", partition, SMALL_SEGMENTS), b"a")
            world.killed().release()
        directory = world.killed()
        self.failing(world, kind)
        load_logs(directory, world.jobs, config_of)
        assert len(world.failures) == 1
        assert directory.failure is world.failures[0]
        assert directory.logs == {}

    def test_a_failing_job_is_reported_too(self, world: World) -> None:
        directory = world.open()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, b"a")
        self.failing(world, "sync")
        directory.flush(log)
        directory.checkpoint()
        world.jobs.run_all()
        assert len(world.failures) == 1
        directory.checkpoint()
        directory.checkpoint_high_watermarks({})
        assert len(world.jobs) == 0

    def test_closing_after_a_failure_leaves_no_mark_but_lets_go(self, world: World) -> None:
        directory = world.open()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
        directory.fail(OSError(errno.EIO, "broken"))
        directory.close()
        again = world.open()
        assert again.clean_broker_epoch is None
        load_logs(again, world.jobs, config_of)
        assert values_of(again.logs["orders", 0]) == [b"a"]


class TestFull:
    """A full disk is no failure: writes are refused, the rest waits for its next turn, and all goes on with room."""

    def full(self, world: World, kind: str, code: int = errno.ENOSPC, times: int = 1000) -> Callable[[], None]:
        """Until the returned function is called, operations of this kind find no room."""
        room = False
        world.disk.fail_when(lambda operation: operation.kind == kind and not room, code, times=times)

        def make_room() -> None:
            nonlocal room
            room = True

        return make_room

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EFBIG])
    def test_checkpoints_are_written_when_there_is_room_again(self, world: World, code: int) -> None:
        directory = world.start()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
        make_room = self.full(world, "write", code)
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

    def test_a_full_disk_is_told_once_and_so_is_its_end(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
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

    def test_a_flush_is_made_up_for_by_the_next(self, world: World) -> None:
        directory = world.start()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, b"a")
        make_room = self.full(world, "write")
        directory.flush(log)
        world.jobs.run_all()
        assert (world.failures, log.recovery_point) == ([], 0)
        make_room()
        directory.flush(log)
        world.jobs.run_all()
        assert log.recovery_point == 1

    def test_a_flush_that_found_no_descriptor_is_made_up_for_by_the_next(self, world: World) -> None:
        directory = world.start()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, b"a")
        spare = self.full(world, "sync", errno.EMFILE)
        directory.flush(log)
        world.jobs.run_all()
        assert (world.failures, log.recovery_point) == ([], 0)
        spare()
        directory.flush(log)
        world.jobs.run_all()
        assert log.recovery_point == 1

    def test_a_log_whose_sync_found_no_room_has_lost_what_it_held(self, world: World) -> None:
        directory = world.start()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS)
        append_values(log, b"a")
        self.full(world, "sync", times=1)
        directory.flush(log)
        world.jobs.run_all()
        assert len(world.failures) == 1, "the system keeps no second copy to try again with"

    def test_a_log_is_created_when_there_is_room(self, world: World) -> None:
        directory = world.start()
        for kind in ("make_dir", "create", "write"):
            make_room = self.full(world, kind)
            with pytest.raises(ApiError, match="is full") as caught:
                directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            make_room()
        log = directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID)
        assert (values_of(log), directory.topic_ids["orders", 0], directory.unopened) == ([], TOPIC_ID, {})
        assert world.failures == []

    def test_a_log_is_deleted_when_there_is_room_for_its_new_name(self, world: World) -> None:
        directory = world.start()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS, topic_id=TOPIC_ID), b"a")
        make_room = self.full(world, "rename")
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

    def test_a_stop_is_prepared_and_ends_but_leaves_no_mark(self, world: World) -> None:
        directory = world.start()
        append_values(directory.open_log("orders", 0, SMALL_SEGMENTS), b"a")
        self.full(world, "write")
        told: list[str] = []
        directory.prepare_close(lambda: told.append("prepared"))
        world.jobs.run_all()
        assert told == ["prepared"]
        with pytest.raises(ApiError, match="is full"):
            directory.close()
        assert world.disk.open_paths() == []
        assert world.open().clean_broker_epoch is None


@pytest.mark.parametrize(("flush_messages", "on_disk"), [(1, 3), (3, 3), (4, 0)])
def test_what_a_killed_process_left_is_on_disk_before_use_where_the_topic_asks_for_it(
    world: World, flush_messages: int, on_disk: int
) -> None:
    append_values(world.start().open_log("orders", 0, LogConfig()), b"a", b"b", b"c")
    directory = world.killed()
    log = directory.open_log("orders", 0, LogConfig(flush_messages=flush_messages))
    directory.flush_before_use(log)
    assert (log.recovery_point, len(world.jobs)) == (on_disk, 0)


def test_what_a_killed_process_left_in_many_logs_is_flushed_in_jobs(world: World) -> None:
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
def test_a_disk_that_does_not_take_what_was_left_keeps_nobody_waiting(world: World, is_full: bool) -> None:
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
