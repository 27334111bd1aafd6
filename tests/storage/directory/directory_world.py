"""A data directory on a simulated disk, and consecutive processes that use it."""

import pytest

from quire.protocol import uuids
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.directory.meta_properties import MetaProperties
from quire.storage.log_config import LogConfig
from simulator.clock import SimClock
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import SMALL_SEGMENTS
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


def config_of(topic: str) -> LogConfig:
    return SMALL_SEGMENTS
