import errno

from quire.storage.log_config import LogConfig
from quire.storage.scanning.checker import Checker
from quire.storage.scanning.range_check import NotCheckedError, ReadCheck
from simulator.disk import SimDisk
from tests.storage.batches import append_values, open_log
from tests.storage.manual_jobs import ManualJobs


class Checking:
    """A log of one batch that was closed cleanly and opened again."""

    def __init__(self, disk: SimDisk) -> None:
        log = open_log(disk, LogConfig())
        append_values(log, b"a")
        log.close()
        self.log = open_log(disk, LogConfig(), clean=True)
        self.jobs = ManualJobs()
        self.failures: list[Exception] = []
        self.checker = Checker(self.jobs, self.failures.append)
        self.told: list[str] = []

    def needed(self) -> ReadCheck:
        try:
            self.log.read(0, 1)
        except NotCheckedError as error:
            return error.check
        raise AssertionError("nothing needs to be checked")

    def check(self, who: str) -> None:
        self.checker.check(self.needed(), lambda: self.told.append(who))


def test_all_readers_of_a_range_wait_for_one_check(disk: SimDisk) -> None:
    checking = Checking(disk)
    checking.check("first")
    checking.check("second")
    assert len(checking.jobs) == 1
    assert checking.told == []
    checking.jobs.run_all()
    assert checking.told == ["first", "second"]
    assert checking.log.read(0, 1) is not None


def test_a_disk_that_fails_is_reported_and_the_waiters_continue(disk: SimDisk) -> None:
    checking = Checking(disk)
    checking.check("first")
    disk.fail_when(lambda operation: operation.kind == "read")
    checking.jobs.run_all()
    (failure,) = checking.failures
    assert isinstance(failure, OSError) and failure.errno == errno.EIO
    assert checking.told == ["first"]


def test_closing_a_file_during_its_check_is_not_a_failure(disk: SimDisk) -> None:
    checking = Checking(disk)
    checking.check("first")
    checking.log.close_files()
    checking.jobs.run_all()
    assert checking.failures == []
    assert checking.told == ["first"]
