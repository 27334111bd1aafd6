"""A metadata log on a simulated disk and virtual time, with a listener that records its calls."""

from collections.abc import Callable, Sequence

from quire.protocol.messages.metadata_records import ConfigRecord
from quire.raft.log_store import FOLDER, CommittedBatch
from quire.raft.log_summary import LogPosition
from quire.raft.metadata_log import MetadataLog
from quire.raft.peers import Peers
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.raft.settings import MetadataLogSettings
from quire.raft.snapshot_file import Snapshot, encode_snapshot, file_name, write_snapshot
from quire.raft.snapshot_taker import SnapshotContent, VersionedRecord
from simulator.clock import SimClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.random import SimRandom

DIRECTORY = "/meta"
PATH = f"{DIRECTORY}/{FOLDER}"
KEY = ReplicaKey(1, b"d" * 16)
VOTERS = VoterSet([Voter(KEY, (Endpoint("CONTROLLER", "localhost", 9093),))])


def setting(value: str) -> VersionedRecord:
    return ConfigRecord(resource_type=4, resource_name="", name="x", value=value), 0


def format_folder(disk: SimDisk, voters: VoterSet = VOTERS) -> SimDisk:
    """The folder after `quire storage format`."""
    disk.make_dirs(PATH)
    disk.sync_dir("/")
    disk.sync_dir(DIRECTORY)
    snapshot = encode_snapshot([], epoch=0, now_ms=1, last_contained_timestamp_ms=1, kraft_version=1, voters=voters)
    write_snapshot(disk, PATH, file_name(LogPosition(0, 0)), snapshot)
    return disk


class SimLog:
    """Implements LogListener: its state is the values of all settings it was given, in order."""

    def __init__(
        self,
        disk: SimDisk,
        seed: int = 1,
        settings: MetadataLogSettings | None = None,
        static_voters: VoterSet | None = None,
        peers: Peers | None = None,
    ) -> None:
        random = SimRandom(seed)
        self.disk = disk
        self.clock = SimClock()
        self.values: list[str] = []
        self.position = (-1, -1, -1)
        self.batches: list[CommittedBatch] = []
        self.leaders: list[tuple[int | None, int]] = []
        self.failures: list[Exception] = []
        self.log = MetadataLog(
            DIRECTORY,
            KEY,
            self,
            clock=self.clock,
            random=random,
            disk=disk,
            jobs=SimJobs(self.clock, random.stream("jobs")),
            failed=self.failures.append,
            settings=settings,
            static_voters=static_voters,
            peers=peers,
        )

    def open(self) -> "SimLog":
        self.log.open()
        return self

    def run(self, duration_ms: float = 100) -> "SimLog":
        self.clock.run_for(duration_ms)
        return self

    def append(self, *values: str) -> int:
        return self.log.append([setting(value) for value in values], self.clock.now_ms())

    def prepare_snapshot(self, snapshot: Snapshot) -> Callable[[], None]:
        values = [record.value or "" for record in snapshot.records if isinstance(record, ConfigRecord)]
        end = snapshot.position

        def replace_state() -> None:
            self.values = values
            self.position = (end.offset - 1, end.epoch, snapshot.last_contained_timestamp_ms)

        return replace_state

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.position[0] + 1, "a gap in what is told"
            self.batches.append(batch)
            self.values += [record.value or "" for record in batch.records if isinstance(record, ConfigRecord)]
            self.position = (batch.last_offset, batch.epoch, batch.timestamp_ms)

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self.leaders.append((leader_id, epoch))

    def snapshot_content(self) -> SnapshotContent | None:
        return SnapshotContent(*self.position, [setting(value) for value in self.values])
