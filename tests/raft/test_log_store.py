"""The folder of the metadata log: which snapshots it has, taken or fetched."""

from quire.raft import snapshot_file
from quire.raft.log_store import FOLDER, LogStore
from quire.raft.log_summary import LogPosition
from quire.raft.settings import MetadataLogSettings
from simulator.clock import SimClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.random import SimRandom

KEEP_LITTLE = MetadataLogSettings(retention_bytes=1, retention_ms=0)


class Folder:
    def __init__(self) -> None:
        self.clock = SimClock()
        self.disk = SimDisk()
        self.failures: list[Exception] = []
        jobs = SimJobs(self.clock, SimRandom(1))
        self.store = LogStore(self.disk, jobs, "/data", KEEP_LITTLE, self.failures.append)
        self.store.open(self.clock.now_ms())

    def begin_snapshot(self, offset: int) -> None:
        position = LogPosition(1, offset)
        batches = snapshot_file.encode_snapshot([], epoch=1, now_ms=1, last_contained_timestamp_ms=1)
        self.store.write_snapshot(position, batches, lambda: None, self.failures.append, self.clock.now_ms())

    def take_snapshot(self, offset: int) -> None:
        self.begin_snapshot(offset)
        self.clock.run_until_idle()

    def fetch_snapshot(self, offset: int) -> None:
        """Stores a snapshot like a follower that gets it from its leader, and restarts the log at its end."""
        position = LogPosition(1, offset)
        batches = snapshot_file.encode_snapshot([], epoch=1, now_ms=1, last_contained_timestamp_ms=1)
        snapshot_file.write_snapshot(self.disk, f"/data/{FOLDER}", snapshot_file.file_name(position), batches)
        self.store.restart_at(position)

    def offsets(self) -> list[int]:
        return [each.offset for each in snapshot_file.list_snapshots(self.disk, f"/data/{FOLDER}")]


def test_a_snapshot_that_was_fetched_and_then_taken_again_is_removed_once() -> None:
    folder = Folder()
    folder.fetch_snapshot(10)
    folder.take_snapshot(10)
    for offset in (20, 30, 40):
        folder.fetch_snapshot(offset)
        folder.store.clean(folder.clock.now_ms() + 1000)
    assert folder.offsets() == [30, 40] and not folder.failures


def test_a_snapshot_that_a_fetched_one_overtakes_is_the_first_to_go() -> None:
    folder = Folder()
    folder.fetch_snapshot(10)
    folder.begin_snapshot(15)
    folder.fetch_snapshot(20)
    folder.clock.run_until_idle()
    folder.fetch_snapshot(30)
    folder.store.clean(folder.clock.now_ms() + 1000)
    assert folder.offsets() == [20, 30] and not folder.failures
