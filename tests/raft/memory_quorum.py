"""A quorum in memory: several state machines, a network of lists, and disks that lose unsynced data.

It carries out effects like the real shell and describes each in plain words (`story.py`), from which the transcripts in
`transcripts/` are made. At every step it checks the invariants: one leader per epoch, one history of committed records,
a high watermark that never moves back, voters that agree with the log, and fetches and appends that depend only on what
is on disk.
"""

from quire.raft.control_state import ControlState
from quire.raft.core import RaftCore
from quire.raft.effects import (
    AnswerFetch,
    Append,
    ChangeVoters,
    CheckLeadership,
    ConnectionLost,
    Effect,
    FetchSnapshot,
    HighWatermark,
    LeaderChanged,
    LeadershipChecked,
    LogCleaned,
    LogSynced,
    PersistElection,
    Propose,
    RaftEvent,
    Received,
    Resign,
    RestartLog,
    Send,
    SnapshotFetched,
    SnapshotPartFetched,
    SnapshotRequested,
    SyncLog,
    Tick,
    Truncate,
    Unreachable,
    VotersChanged,
)
from quire.raft.log_summary import LogPosition
from quire.raft.messages import BeginEpoch, EndEpoch, FetchAnswer, FetchRequest, Message, VoteAnswer, VoteRequest
from quire.raft.replicas import ReplicaKey, Voter, VoterSet
from quire.raft.roles.role import Kind
from quire.raft.voter_changes import AddVoter, RemoveVoter, UpdateVoter, UpgradeKraftVersion, VoterChange
from simulator.random import SimRandom
from tests.raft.memory_node import MemoryNode
from tests.raft.story import log_in_words, tell

REQUESTS = (VoteRequest, BeginEpoch, EndEpoch, FetchRequest)


class MemoryQuorum:
    def __init__(self, voters: int, observers: int = 0, seed: int = 1, *, dynamic: bool = False) -> None:
        """A dynamic quorum has its voters in the log, with directories; its observers know only bootstrap servers."""
        self.now_ms = 0.0
        self.random = SimRandom(seed)
        self.directories = 0
        keys = [self._new_key(id_) for id_ in range(1, voters + observers + 1)]
        self.static_voters = VoterSet(()) if dynamic else VoterSet.of_ids(range(1, voters + 1))
        # All nodes: the nodes of a shorter list might all have lost their disks, and know no leader.
        self.bootstrap = [-1 - key.id for key in keys] if dynamic else []
        self.dynamic = dynamic
        formatted = ControlState(1, VoterSet(Voter(key) for key in keys[:voters])) if dynamic else ControlState()
        self.nodes = {key.id: MemoryNode(key, formatted if key.id <= voters else ControlState()) for key in keys}
        self.network: list[tuple[int, int, Message]] = []
        self.cut_off: list[int] = []
        self.cuts: set[tuple[int, int]] = set()
        """Pairs of sender and receiver between which nothing arrives."""
        self.slow_snapshots = False
        self.fetch_max: int | None = None
        """How many batches a fetch brings at most."""
        self.story: list[str] = []
        self.leaders: dict[int, int] = {}
        self.committed: dict[int, tuple[int, object]] = {}
        self.controls: dict[int, ControlState] = {}
        self.changes = 0
        self.answers: dict[int, VotersChanged] = {}
        self.checks: list[int] = []
        """For each check of leadership, the last offset that any leader had committed when it was asked for."""

    def _new_key(self, id_: int) -> ReplicaKey:
        self.directories += 1
        return ReplicaKey(id_, self.directories.to_bytes(16))

    def core(self, id_: int) -> RaftCore:
        core = self.nodes[id_].core
        assert core is not None
        return core

    # --- Nodes

    def start(self, id_: int) -> None:
        node = self.nodes[id_]
        assert node.core is None
        random = self.random.stream(f"node {id_}")
        history = node.log.history(self.static_voters)
        node.high_watermark = node.start.offset or -1
        node.core = RaftCore(node.key, history, node.log.summary(), random, bootstrap=self.bootstrap)
        self._carry_out(node, node.core.start(node.election, self.now_ms))

    def crash(self, id_: int) -> None:
        """Power loss: unsynced data and messages in transit are lost."""
        node = self.nodes[id_]
        node.crash()
        self.network = [(sender, to, each) for sender, to, each in self.network if id_ not in (sender, to)]
        self.story.append(f"{id_} crashes, log ends at {node.end_offset}")

    def kill(self, id_: int) -> None:
        """A crash that every other node notices, because its connections close."""
        self.crash(id_)
        for node in self.nodes.values():
            if node.core is not None:
                self.step(node.id, ConnectionLost(id_))

    def wipe(self, id_: int) -> None:
        """A crash after which the disk is empty; formatted again, the node has a new directory id."""
        if self.nodes[id_].core is not None:
            self.crash(id_)
        self.nodes[id_] = MemoryNode(self._new_key(id_), ControlState())
        self.story.append(f"{id_} has an empty disk")

    def lose_connection(self, id_: int, peer: int) -> None:
        """A connection closes: requests on it fail, and the node notices at once."""
        lost = [each for each in self.network if {each[0], each[1]} == {id_, peer}]
        self.network = [each for each in self.network if each not in lost]
        self.story.append(f"{id_} loses its connection to {peer}")
        self.step(id_, ConnectionLost(peer))
        for sender, to, message in lost:
            self._lose(sender, to, message)

    def step(self, id_: int, event: RaftEvent) -> None:
        node = self.nodes[id_]
        self._carry_out(node, self.core(id_).step(event, self.now_ms))
        assert self.core(id_).voters == node.log.history(self.static_voters).voters, (
            "the voters are not those of the log"
        )

    # --- Commands of the transcripts

    def campaign(self, id_: int) -> None:
        """Time passes until this node starts a campaign; the timers of the others do not fire."""
        core = self.core(id_)
        kind = core.kind
        while core.kind is kind:
            self.now_ms = max(self.now_ms, core.deadline_ms)
            self.step(id_, Tick())

    def elect(self, id_: int) -> None:
        """The node wins an election; the story has only the result."""
        self.campaign(id_)
        self.stabilize()
        core = self.core(id_)
        assert core.is_leader
        self.story[:] = [f"{id_} leads epoch {core.epoch}"]

    def win(self, id_: int) -> None:
        """The node wins an election, and only votes are delivered."""
        while not self.core(id_).is_leader:
            votes = [i for i, (*_, each) in enumerate(self.network) if isinstance(each, VoteRequest | VoteAnswer)]
            if votes:
                self.deliver(votes[0])
            else:
                self.campaign(id_)
        self.story[:] = [f"{id_} leads epoch {self.core(id_).epoch}"]

    def propose(self, id_: int, payload: str) -> None:
        self.step(id_, Propose(1, payload))

    def resign(self, id_: int) -> None:
        self.step(id_, Resign())

    def change(self, leader_id: int, change: VoterChange) -> None:
        self.changes += 1
        self.step(leader_id, ChangeVoters(self.changes, change))

    def add_voter(self, leader_id: int, id_: int) -> None:
        self.change(leader_id, AddVoter(Voter(self.nodes[id_].key)))

    def remove_voter(self, leader_id: int, id_: int) -> None:
        """By the key that the leader knows; the node itself may have another directory by now."""
        voter = self.core(leader_id).voters.get(id_)
        self.change(leader_id, RemoveVoter(self.nodes[id_].key if voter is None else voter.key))

    def upgrade(self, leader_id: int, version: int = 1) -> None:
        """The voters of a static quorum tell the leader their directories, then the quorum becomes dynamic."""
        for voter in self.core(leader_id).voters:
            self.change(leader_id, UpdateVoter(Voter(self.nodes[voter.key.id].key)))
        self.change(leader_id, UpgradeKraftVersion(version))

    def check(self, id_: int) -> None:
        """Asks a node whether it still leads."""
        self.checks.append(max(self.committed, default=-1))
        self.step(id_, CheckLeadership(len(self.checks) - 1))

    def snapshot(self, id_: int, offset: int) -> None:
        """The log before `offset`, all committed, becomes a snapshot."""
        node, core = self.nodes[id_], self.core(id_)
        assert offset <= node.high_watermark
        epoch = next(batch.epoch for batch in reversed(node.batches) if batch.next_offset <= offset)
        position, control = LogPosition(epoch, offset), core.control.at(offset)
        node.clean(position, control)
        self._check_control(offset, control)
        self.step(id_, LogCleaned(position))
        self.story.append(f"{id_} has a snapshot up to {offset} of epoch {epoch}")

    # --- Disk and network

    def sync(self, id_: int) -> None:
        if self.nodes[id_].sync_running is None:
            self.nodes[id_].begin_sync()
        self.finish_sync(id_)

    def finish_sync(self, id_: int) -> None:
        done = self.nodes[id_].finish_sync()
        self.story.append(f"{id_} synced {done.offset}")
        self.step(id_, LogSynced(done.offset, done.cuts))

    def fetch_snapshot(self, id_: int) -> None:
        """Fetches the last part, unless the leader cannot be reached or has a newer one by now."""
        node = self.nodes[id_]
        assert node.snapshot_wanted is not None
        (leader_id, position), node.snapshot_wanted = node.snapshot_wanted, None
        leader = self.nodes[leader_id]
        reached = not (self._is_cut(id_, leader_id) or self._is_cut(leader_id, id_)) and leader.core is not None
        if not reached or leader.start != position:
            self.story.append(f"{id_} cannot fetch the snapshot up to {position.offset} from {leader_id}")
            self.step(id_, Unreachable(leader_id))
            return
        self.step(leader_id, SnapshotRequested(node.key))
        node.snapshot = (position, leader.log.start_control)
        self.story.append(f"{id_} has fetched the snapshot up to {position.offset}")
        self.step(id_, SnapshotFetched(*node.snapshot))

    def fetch_snapshot_part(self, id_: int) -> None:
        node = self.nodes[id_]
        assert node.snapshot_wanted is not None
        leader_id, position = node.snapshot_wanted
        if not self._is_cut(id_, leader_id) and self.nodes[leader_id].core is not None:
            self.step(leader_id, SnapshotRequested(node.key))
            self.step(id_, SnapshotPartFetched(position))

    def deliver(self, index: int = 0) -> None:
        sender, to, message = self.network.pop(index)
        receiver = self._resolve(to)
        if self._is_cut(sender, receiver) or self.nodes[receiver].core is None:
            self._lose(sender, to, message)
        else:
            self.step(receiver, Received(sender, message))

    def deliver_between(self, sender: int, to: int) -> None:
        """The oldest message from one to the other."""
        self.deliver(next(i for i, each in enumerate(self.network) if each[:2] == (sender, to)))

    def duplicate(self, index: int) -> None:
        self.network.append(self.network[index])

    def _resolve(self, to: int) -> int:
        """Bootstrap server -2 is node 1, -3 is node 2."""
        return to if to > 0 else -to - 1

    def _is_cut(self, sender: int, to: int) -> bool:
        return sender in self.cut_off or to in self.cut_off or (sender, to) in self.cuts

    def _lose(self, sender: int, to: int, message: Message) -> None:
        """The sender gets no answer, because the request or the answer was lost."""
        asked, silent = (sender, to) if isinstance(message, REQUESTS) else (to, sender)
        if self.nodes[asked].core is not None:
            self.story.append(f"{asked} cannot reach {silent}")
            fetch = message.number if isinstance(message, FetchRequest | FetchAnswer) else None
            self.step(asked, Unreachable(silent, fetch))

    # --- Time

    def stabilize(self) -> None:
        """Disks and network complete all pending work in order."""
        for _ in range(20_000):
            syncing = [node.id for node in self.nodes.values() if node.has_sync]
            fetching = [node.id for node in self.nodes.values() if node.snapshot_wanted and not self.slow_snapshots]
            if syncing:
                self.sync(syncing[0])
            elif self.network:
                self.deliver()
            elif fetching:
                self.fetch_snapshot(fetching[0])
            else:
                return
        raise AssertionError("it does not settle")

    def wait(self, duration_ms: float) -> None:
        """Time passes for all nodes: each deadline fires when it is due, and all pending work completes in between."""
        until_ms = self.now_ms + duration_ms
        for _ in range(20_000):
            self.stabilize()
            running = [node.core for node in self.nodes.values() if node.core is not None]
            due_ms = min(core.deadline_ms for core in running)
            if due_ms > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = max(self.now_ms, due_ms)
            self.step(
                next(id_ for id_, node in self.nodes.items() if node.core and node.core.deadline_ms <= due_ms), Tick()
            )
        raise AssertionError("too much happens at once")

    def status(self) -> None:
        for node in self.nodes.values():
            if node.core is None:
                self.story.append(f"{node.id} is down")
                continue
            core = node.core
            start = f"snapshot {node.start.offset}, " if node.start.offset else ""
            voters = (
                f"voters {' '.join(map(str, core.voters.ids)) or 'unknown'}, " if core.control.kraft_version else ""
            )
            self.story.append(
                f"{node.id} {core.kind.value} in epoch {core.epoch}, leader {core.leader_id}, {voters}"
                f"high watermark {core.high_watermark}, log {start}{log_in_words(node.batches)}"
            )

    # --- Effects

    def _carry_out(self, node: MemoryNode, effects: list[Effect]) -> None:
        for effect in effects:
            line = tell(effect)
            if line:
                self.story.append(f"{node.id} {line}")
            self._carry_out_one(node, effect)

    def _carry_out_one(self, node: MemoryNode, effect: Effect) -> None:
        match effect:
            case PersistElection(election):
                assert node.election.may_become(election), "a promise was broken"
                node.election = election
            case Append(batch):
                node.append(batch)
            case Truncate(offset):
                node.truncate(offset)
            case RestartLog(position):
                node.restart(position)
            case SyncLog():
                node.sync_wanted = effect
            case Send(to, message):
                self._send(node, to, message)
            case AnswerFetch(to, request, epoch, high_watermark):
                batches = tuple(batch for batch in node.batches if batch.base_offset >= request.offset)[
                    : self.fetch_max
                ]
                answer = FetchAnswer(epoch, node.id, request.number, high_watermark, batches=batches)
                self.network.append((node.id, to, answer))
            case FetchSnapshot(leader_id, position):
                node.snapshot_wanted = (leader_id, position)
            case HighWatermark(offset):
                self._check_committed(node, offset)
            case LeaderChanged(leader_id, epoch):
                if leader_id == node.id:
                    assert self.leaders.setdefault(epoch, node.id) == node.id, f"two leaders in epoch {epoch}"
            case VotersChanged(request_id):
                assert request_id not in self.answers, "answered twice"
                self.answers[request_id] = effect
            case LeadershipChecked(request_id, leads):
                assert not leads or node.high_watermark > self.checks[request_id], "a leader of the past was believed"

    def _send(self, node: MemoryNode, to: int, message: Message) -> None:
        if isinstance(message, FetchRequest):
            assert node.log == node.on_disk, "a fetch promises what is not on disk"
        self.network.append((node.id, to, message))

    # --- Invariants

    def _check_committed(self, node: MemoryNode, offset: int) -> None:
        assert offset > node.high_watermark, "the high watermark moved back"
        node.high_watermark = offset
        assert node.core is not None
        self._check_control(offset, node.core.control.at(offset))
        for batch in node.batches:
            if batch.next_offset <= offset:
                record = (batch.epoch, batch.payload)
                assert self.committed.setdefault(batch.base_offset, record) == record, "two committed histories"

    def _check_control(self, offset: int, control: ControlState) -> None:
        # Before the first leader's records, only formatted voters know the voters.
        if control.voters is not None:
            assert self.controls.setdefault(offset, control) == control, f"two voter sets at offset {offset}"

    def check_leaders_hold_what_is_committed(self) -> None:
        for node in self.nodes.values():
            if node.core is not None and node.core.kind is Kind.LEADER and node.core.epoch == max(self.leaders):
                held = {batch.base_offset: (batch.epoch, batch.payload) for batch in node.batches}
                for base_offset, record in self.committed.items():
                    assert base_offset < node.start.offset or held.get(base_offset) == record, "a commit was lost"

    def is_wiped(self, voter: Voter) -> bool:
        """Whether the node of a voter has lost the disk that voted."""
        return not voter.key.matches(self.nodes[voter.key.id].key)
