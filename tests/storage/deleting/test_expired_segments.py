"""Expired segments are deleted durably, in the right order, and without disturbing readers."""

import itertools
import logging

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Disk
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.segment import lookup
from simulator.clock import SimClock
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.batches import append, append_values, batch, header, read_all, values_of
from tests.storage.manual_jobs import ManualJobs

KEY = ("orders", 0)
BY_SIZE = LogConfig(segment_bytes=300, index_interval_bytes=100, retention_ms=-1, retention_bytes=500)
BY_AGE = LogConfig(segment_bytes=300, index_interval_bytes=100, retention_ms=1000)


class World:
    """A data directory in use; `restarted` is the next process on the same disk."""

    def __init__(self, disk: SimDisk, clock: SimClock | None = None) -> None:
        self.disk = disk
        self.clock = clock or SimClock()
        self.jobs = ManualJobs()
        self.failures: list[Exception] = []
        self.asked_again = 0
        self.directory = LogDirectory.open(
            disk,
            "data",
            clock=self.clock,
            jobs=self.jobs,
            random=SimRandom(1),
            on_failure=lambda _directory, error: self.failures.append(error),
        )

    def open(self, config: LogConfig) -> Log:
        return self.directory.open_log(*KEY, config)

    def fill(self, log: Log, count: int, *, timestamp: int | None = None) -> None:
        """Batches of about 120 bytes, two in each segment."""
        now_ms = self.clock.now_ms()
        for _ in range(count):
            value = b"%050d" % log.end_offset
            append(log, batch(value, timestamp=now_ms if timestamp is None else timestamp), now_ms=now_ms)

    def flush(self, log: Log) -> None:
        self.directory.flush(log)
        self.settle()

    def look(self, high_watermark: int | None = None) -> None:
        log = self.directory.logs[KEY]
        self.directory.drop_expired(*KEY, log.end_offset if high_watermark is None else high_watermark, self._more)

    def _more(self) -> None:
        self.asked_again += 1

    def settle(self) -> None:
        while len(self.jobs) or self.directory._expired.is_busy:
            self.jobs.run_all()
            self.clock.run_for(1)

    def restarted(self, disk: SimDisk, config: LogConfig) -> Log:
        again = World(disk, self.clock)
        return again.open(config)


def bases(disk: Disk, log: Log, suffix: str = ".log") -> list[int]:
    return [int(name.split(".")[0]) for name in disk.list_dir(log.path) if name.endswith(suffix)]


@pytest.fixture
def world() -> World:
    return World(SimDisk())


def test_the_oldest_segments_are_deleted_by_size_with_one_log_line(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    log = world.open(BY_SIZE)
    world.fill(log, 11)
    before = log.size_bytes
    with caplog.at_level(logging.INFO, "quire.storage"):
        world.look()
        world.settle()
    (line,) = [record.getMessage() for record in caplog.records if "deleted" in record.getMessage()]
    assert 500 <= log.size_bytes < 500 + 300
    assert line == (
        f"deleted offsets 0 to {log.start_offset - 1} of orders-0, {before - log.size_bytes} bytes "
        f"in {log.start_offset // 2} segments: the log is larger than retention.bytes=500"
    )
    assert [offset for offset, _ in read_all(log)] == list(range(log.start_offset, 11))
    start_offset = log.start_offset
    world.look()
    world.settle()
    assert (log.start_offset, world.asked_again) == (start_offset, 0), "nothing more has expired"


def test_only_some_of_very_many_segments_are_deleted_at_once(world: World) -> None:
    log = world.open(BY_SIZE)
    world.fill(log, 2 * 40)
    world.look()
    world.settle()
    assert (log.start_offset, world.asked_again) == (2 * 32, 1)
    world.look()
    world.settle()
    assert (log.size_bytes < 800, world.asked_again) == (True, 1)


def test_a_log_that_expires_completely_is_empty_and_continues_at_its_end(world: World) -> None:
    log = world.open(BY_AGE)
    world.fill(log, 5)
    world.look()
    world.settle()
    assert (log.start_offset, len(log.segments)) == (0, 3), "nothing is old enough"
    world.clock.run_for(1001)
    world.look()
    world.settle()
    assert (log.start_offset, log.end_offset, log.size_bytes) == (5, 5, 0)
    assert bases(world.disk, log) == [5]
    world.look()
    world.settle()
    assert bases(world.disk, log) == [5], "an empty segment stays"
    world.fill(log, 1)
    assert [offset for offset, _ in read_all(log)] == [5]
    with pytest.raises(ApiError) as refused:
        log.read(4, 1000)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_records_without_timestamps_are_as_old_as_their_file() -> None:
    clock = SimClock()
    world = World(SimDisk(now_ms=clock.now_ms), clock)
    log = world.open(BY_AGE)
    world.fill(log, 2, timestamp=-1)
    world.clock.run_for(900)
    world.fill(log, 3, timestamp=-1)
    world.clock.run_for(200)
    world.look()
    world.settle()
    assert log.start_offset == 2
    log = world.restarted(world.disk.kill(), BY_AGE)
    assert log.find_expired(5, world.clock.now_ms()) is None
    found = log.find_expired(5, world.clock.now_ms() + 900)
    assert found is not None and found.start_offset == 5, "a restart makes no file younger"


def test_nothing_above_the_high_watermark_goes(world: World) -> None:
    log = world.open(BY_AGE)
    world.fill(log, 6)
    world.clock.run_for(1001)
    world.look(high_watermark=3)
    world.settle()
    assert log.start_offset == 2


def test_files_are_renamed_first_and_removed_after_their_delay(world: World) -> None:
    log = world.open(BY_SIZE._replace(file_delete_delay_ms=5000))
    world.fill(log, 7)
    world.look()
    world.settle()
    assert bases(world.disk, log, ".log.deleted") == [0]
    world.clock.run_for(5000)
    world.settle()
    assert not [name for name in world.disk.list_dir(log.path) if "deleted" in name]
    assert [name for name in world.disk.list_dir(log.path) if name.startswith(f"{0:020d}")] == []


def test_a_reader_in_the_middle_of_a_segment_that_goes_is_not_disturbed(world: World) -> None:
    log = world.open(BY_AGE)
    world.fill(log, 3)
    part = log.read(0, 1 << 20)
    assert part is not None
    expected = part.read()
    world.clock.run_for(1001)
    world.look()
    world.settle()
    assert log.start_offset == 3
    assert part.read() == expected


def test_the_checkpoint_has_the_new_start_before_any_reader_sees_it(world: World) -> None:
    log = world.open(BY_AGE)
    world.fill(log, 5)
    world.clock.run_for(1001)
    world.look()
    while log.start_offset == 0:
        world.clock.run_for(1)
        if len(world.jobs):
            world.jobs.run_next()
    assert world.disk.read_file("data/log-start-offset-checkpoint").endswith(b"orders 0 5\n")
    found = world.restarted(world.disk.crash(SimRandom(1)), BY_AGE)
    assert (found.start_offset, found.end_offset, read_all(found)) == (5, 5, [])


def test_a_crash_at_any_step_leaves_all_or_the_rest(world: World) -> None:
    """A kill or a power loss at each change on disk in turn: records that have not expired are never missing."""
    outcomes = []
    for crash_at, reorder in itertools.product(range(1, 200), (None, False, True)):
        disk = SimDisk(SimRandom(crash_at))
        world = World(disk)
        log = world.open(BY_AGE)
        world.fill(log, 6)
        world.clock.run_for(1001)
        world.fill(log, 2)
        world.flush(log)
        kept = values_of(log)[6:]
        disk.calls.crash_at = disk.operations + crash_at
        crashed = False
        try:
            world.look()
            world.settle()
            world.clock.run_for(60_000)
            world.settle()
        except Crashed:
            crashed = True
        seen = log.start_offset
        left = disk.kill() if reorder is None else disk.crash(SimRandom(crash_at), reorder=reorder)
        found = world.restarted(left, BY_AGE)
        assert found.start_offset >= seen, "a start that was seen stays"
        assert found.start_offset in (0, 6)
        assert values_of(found)[-2:] == kept
        assert found.end_offset == 8
        outcomes.append(found.start_offset)
        if not crashed:
            break
    assert {0, 6} == set(outcomes), "some crashes came too early, some too late"


def test_producer_state_survives_the_deletion_of_its_records_and_a_power_loss(world: World) -> None:
    log = world.open(BY_AGE)
    sent = batch(b"a", producer_id=7, producer_epoch=0, sequence=0, timestamp=world.clock.now_ms())
    append(log, sent)
    world.clock.run_for(1001)
    world.look()
    world.settle()
    assert log.start_offset == log.end_offset == 1
    found = world.restarted(world.disk.crash(SimRandom(1)), BY_AGE)
    again = header(batch(b"a", producer_id=7, producer_epoch=0, sequence=0))
    original = found.check_producer(again)
    assert original is not None and original.first_offset == 0


def test_a_full_disk_gets_room_from_what_has_expired(world: World) -> None:
    log = world.open(BY_SIZE)
    for _ in range(3):
        world.directory.checkpoint()
        world.fill(log, 11)
        world.flush(log)
        world.disk.capacity_bytes = world.disk.total_bytes("data") - world.disk.free_bytes("data")
        start_offset = log.start_offset
        world.look()
        world.settle()
        assert log.start_offset > start_offset
        world.clock.run_for(60_000)
        world.settle()
        assert world.disk.free_bytes("data") > 500
        world.disk.capacity_bytes = None
    assert world.failures == []


def test_a_full_disk_puts_off_what_would_have_to_be_written_for_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    log = world.open(BY_AGE)
    world.fill(log, 11)
    world.flush(log)
    world.clock.run_for(1001)
    world.disk.capacity_bytes = 0
    for _ in range(3):
        world.look()
        world.settle()
        world.directory.checkpoint()
        world.settle()
    assert (log.start_offset, world.failures) == (0, [])
    world.disk.capacity_bytes = None
    with caplog.at_level(logging.INFO, "quire.storage"):
        world.look()
        world.settle()
    assert log.start_offset == 11
    assert caplog.text.count("deleted") == 1


def test_a_disk_that_fails_during_the_deletion_takes_the_directory_offline(world: World) -> None:
    log = world.open(BY_SIZE)
    world.fill(log, 11)
    world.disk.fail_when(lambda operation: operation.kind == "rename" and operation.path.endswith(".log"))
    world.look()
    world.settle()
    assert (len(world.failures), log.size_bytes > 800) == (1, False)
    world.look()


@pytest.mark.parametrize("jobs_before", range(4))
def test_a_log_that_is_deleted_at_the_same_time_is_skipped_and_blocks_no_other(world: World, jobs_before: int) -> None:
    log = world.open(BY_AGE)
    world.fill(log, 2)
    other = world.directory.open_log("other", 0, BY_AGE)
    world.fill(other, 2)
    world.clock.run_for(1001)
    world.look()
    world.directory.drop_expired("other", 0, 2, lambda: None)
    world.clock.run_for(1)
    for _ in range(jobs_before):
        world.jobs.run_next()
    world.directory.delete_log(*KEY)
    world.settle()
    assert (log.start_offset, other.start_offset, world.failures) == (0, 2, [])


def test_many_logs_share_the_writes_of_the_checkpoint() -> None:
    world = World(SimDisk())
    logs = [world.directory.open_log("orders", partition, BY_SIZE) for partition in range(50)]
    for log in logs:
        append_values(log, *[bytes(50)] * 11)
        world.flush(log)
    before = len([each for each in world.disk.calls.history if each.kind == "write"])
    for partition, log in enumerate(logs):
        world.directory.drop_expired("orders", partition, log.end_offset, lambda: None)
    world.settle()
    assert all(log.start_offset > 0 for log in logs)
    writes = [each for each in world.disk.calls.history if each.kind == "write"][before:]
    assert len([each for each in writes if "log-start-offset-checkpoint.background" in each.path]) == 2


def test_a_wrong_index_is_rebuilt_in_a_job_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "REBUILT_AT_ONCE_BYTES", 0)
    world = World(SimDisk())
    log = world.open(BY_AGE)
    world.fill(log, 7)
    world.flush(log)
    for segment in log.segments[:2]:
        world.disk.open(segment.time_index.path).truncate(5)
        segment.time_index.unload()
        segment._max_timestamp = None  # as after a restart
    world.clock.run_for(2000)
    world.look()
    assert (log.start_offset, len(world.jobs)) == (0, 1), "the event loop rebuilds nothing"
    world.settle()
    assert log.start_offset == log.end_offset == 7
