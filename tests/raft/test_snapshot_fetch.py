"""A snapshot is downloaded into its own file, which no other download writes and which is removed if unused."""

import errno
import logging
from collections.abc import Callable, Sequence

import pytest

from quire.address import Address
from quire.pending import Pending
from quire.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from quire.protocol.schema import Message
from quire.raft.addresses import Addresses
from quire.raft.effects import Effect, RaftEvent, RestartLog, SnapshotFetched, Unreachable
from quire.raft.log_summary import LogPosition
from quire.raft.outbox import Outbox, PeerResponse
from quire.raft.peers import NoAnswer, Purpose
from quire.raft.replicas import Endpoint, ReplicaKey
from quire.raft.snapshot_fetch import SnapshotFetch
from quire.raft.snapshot_file import Snapshot, encode_snapshot, file_name, read_snapshot
from quire.raft.wire import fetch_snapshot
from quire.raft.wire.fetch_snapshot import SnapshotPart, SnapshotPartRequest
from simulator.clock import SimClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.random import SimRandom
from tests.raft.future_snapshots import future_snapshot
from tests.raft.sim_log import setting

FOLDER = "/meta"
LEADER, EPOCH = 2, 5
POSITION, LATER = LogPosition(4, 100), LogPosition(4, 200)
CONTENT = b"".join(
    encode_snapshot([setting("a"), setting("b")], epoch=4, now_ms=1, last_contained_timestamp_ms=1, kraft_version=1)
)


class Fetching:
    """A follower that fetches from node 2; it is the outbox's owner, the peers and the machine."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.disk = SimDisk()
        self.disk.make_dirs(FOLDER)
        self.own_endpoints: tuple[Endpoint, ...] = ()
        self.requests: list[tuple[SnapshotPartRequest, Pending[Message | NoAnswer]]] = []
        self.events: list[RaftEvent] = []
        self.wants: LogPosition | None = None
        self.state: Snapshot | None = None
        self.unsupported: list[Exception] = []
        outbox = Outbox(self, "cluster", self, Addresses(), clock=self.clock)
        self.jobs = SimJobs(self.clock, SimRandom(1))
        self.fetch = SnapshotFetch(
            ReplicaKey(1), self.step, outbox, self.disk, self.jobs, FOLDER, self.prepare, self.unsupported.append
        )

    def prepare(self, snapshot: Snapshot) -> Callable[[], None]:
        assert self.jobs.unfinished == 1 and not self.happened(SnapshotFetched), "the event loop waits for this"

        def replace_state() -> None:
            self.state = snapshot

        return replace_state

    def step(self, event: RaftEvent) -> Sequence[Effect]:
        self.events.append(event)
        if isinstance(event, SnapshotFetched) and event.position == self.wants:
            return [RestartLog(event.position)]
        return []

    def ask(self, address: Address, purpose: Purpose, request: Message) -> Pending[Message | NoAnswer]:
        answer: Pending[Message | NoAnswer] = Pending()
        assert isinstance(request, FetchSnapshotRequest)
        self.requests.append((fetch_snapshot.read(request), answer))
        return answer

    def close(self) -> None: ...

    def address_of(self, node_id: int) -> Address | None:
        return Address("localhost", 9093)

    def answered(self, peer: int, answer: PeerResponse) -> None: ...

    def lost(self, peer: int, fetch: int | None, *, connection_lost: bool) -> None: ...

    def start(self, position: LogPosition = POSITION) -> None:
        self.wants = position
        self.fetch.start(LEADER, position, EPOCH)

    def send(self, end: int = len(CONTENT), content: bytes = CONTENT) -> None:
        """The leader answers the last request with the part of the snapshot up to `end`."""
        asked, answer = self.requests[-1]
        part = SnapshotPart(EPOCH, LEADER, len(content), content[asked.offset : end])
        answer.complete(fetch_snapshot.response(part, asked, None))

    def take(self, position: LogPosition = POSITION) -> Snapshot:
        """The machine replaces the log by the snapshot."""
        replace_state = self.fetch.take(position)
        assert self.state is None, "replaced before the log"
        replace_state()
        assert self.state is not None
        return self.state

    def finish(self) -> None:
        """Runs the pending jobs."""
        self.clock.run_for(100)

    def happened(self, kind: type[RaftEvent]) -> list[RaftEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def names(self) -> list[str]:
        return self.disk.list_dir(FOLDER)


def test_a_snapshot_gets_its_name_when_it_replaces_the_log() -> None:
    sim = Fetching()
    sim.start()
    sim.send(end=50)
    sim.send()
    sim.finish()
    assert isinstance(sim.events[-1], SnapshotFetched)
    assert file_name(POSITION) not in sim.names
    snapshot = sim.take()
    assert snapshot.position == POSITION and len(snapshot.records) == 2
    assert sim.names == [file_name(POSITION)]


def test_the_state_is_built_in_the_job_and_only_exchanged_on_the_event_loop() -> None:
    sim = Fetching()
    sim.start()
    sim.send()
    sim.finish()
    assert sim.jobs.unfinished == 0 and sim.state is None
    sim.take()
    assert sim.state is not None


def test_a_snapshot_that_is_asked_for_again_while_it_is_checked_is_not_downloaded_again() -> None:
    sim = Fetching()
    sim.start()
    sim.send()
    sim.start()
    assert len(sim.requests) == 1
    sim.finish()
    sim.fetch.take(POSITION)
    assert len(read_snapshot(sim.disk, FOLDER, file_name(POSITION)).records) == 2


def test_a_download_leaves_a_file_that_is_being_checked_alone() -> None:
    sim = Fetching()
    sim.start()
    sim.send()
    sim.start(LATER)
    sim.start(POSITION)
    sim.finish()
    sim.fetch.take(POSITION)
    assert sim.names == [file_name(POSITION)], "nothing is left of the later one"
    assert len(read_snapshot(sim.disk, FOLDER, file_name(POSITION)).records) == 2


def test_a_check_that_fails_is_reported_and_the_next_request_begins_again() -> None:
    sim = Fetching()
    sim.start()
    sim.send(content=b"x" * len(CONTENT))
    sim.start()
    sim.finish()
    assert sim.events[-1] == Unreachable(LEADER)
    assert sim.names == []
    sim.start()
    assert sim.requests[-1][0].offset == 0 and len(sim.requests) == 2
    sim.send()
    sim.finish()
    assert len(sim.take().records) == 2


def test_a_snapshot_of_the_future_is_reported_and_not_fetched_again() -> None:
    sim = Fetching()
    sim.start()
    sim.send(content=future_snapshot(b"\x01\x63\x00"))
    sim.finish()
    assert ["type 99" in str(each) and "upgrade this node" in str(each) for each in sim.unsupported] == [True]
    assert sim.happened(Unreachable) == [], "which would make the machine retry"
    assert sim.names == []


def test_a_dropped_snapshot_is_removed() -> None:
    sim = Fetching()
    sim.start()
    sim.send(end=50)
    sim.start(LATER)
    assert len(sim.names) == 1 and sim.names[0].startswith(f"{LATER.offset:020d}")
    sim.fetch.stop()
    assert sim.names == []
    assert sim.disk.open_paths() == []


def test_a_check_that_a_stop_comes_before_leaves_no_file_open() -> None:
    sim = Fetching()
    sim.start()
    sim.send()
    sim.jobs.stop()
    sim.fetch.stop()
    assert sim.names, "the check did not run"
    assert sim.disk.open_paths() == []


def test_no_file_is_open_between_two_parts() -> None:
    sim = Fetching()
    sim.start()
    assert sim.disk.open_paths() == []
    sim.send(end=50)
    assert sim.names and sim.disk.open_paths() == []


def test_a_whole_snapshot_that_the_machine_no_longer_wants_is_removed() -> None:
    sim = Fetching()
    sim.start()
    sim.send()
    sim.wants = None
    sim.finish()
    assert sim.happened(SnapshotFetched)
    assert sim.names == []


@pytest.mark.parametrize("call", ["open", "pwritev"])
def test_a_full_disk_ends_the_fetch_and_is_logged_once(call: str, caplog: pytest.LogCaptureFixture) -> None:
    sim = Fetching()
    kinds = {"open": "create", "pwritev": "write"}
    sim.disk.fail_when(lambda each: each.kind == kinds[call], errno.ENOSPC, times=2)
    with caplog.at_level(logging.WARNING, "quire.raft"):
        for _ in range(2):
            sim.start()
            if call == "pwritev":
                sim.send()
    assert sim.happened(Unreachable) == [Unreachable(LEADER)] * 2
    assert sim.names == [] and sim.disk.open_paths() == []
    assert len(caplog.records) == 1
    sim.start()
    sim.send()
    sim.finish()
    assert sim.take().position == POSITION
