"""A quorum in memory: several state machines, a network of lists, and disks that forget what was not synced.

It carries out effects as the real shell does and writes down each in plain words, which is what the transcripts in
`transcripts/` are made of. At every step it checks what must always hold: one leader per epoch, one history of
committed records, and a high watermark that never moves back.
"""

from quire.raft.core import RaftCore
from quire.raft.effects import (
    AnswerFetch,
    Append,
    Effect,
    Event,
    HighWatermark,
    InstallSnapshot,
    LeaderChanged,
    LogCleaned,
    LogSynced,
    PersistElection,
    Propose,
    Received,
    Resign,
    Send,
    SnapshotInstalled,
    StartOfEpoch,
    SyncLog,
    Tick,
    Truncate,
    Unreachable,
)
from quire.raft.log_summary import LogPosition, LogSummary
from quire.raft.messages import (
    Batch,
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    FetchAnswer,
    FetchRequest,
    Message,
    VoteAnswer,
    VoteRequest,
)
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.roles.role import Kind
from simulator.random import SimRandom

REQUESTS = (VoteRequest, BeginEpoch, EndEpoch, FetchRequest)


class MemoryNode:
    """One replica: its machine, its log, and what of both is on disk."""

    def __init__(self, id_: int) -> None:
        self.id = id_
        self.core: RaftCore | None = None
        self.election = Election()
        self.start = LogPosition(0, 0)
        self.batches: list[Batch] = []
        self.synced_offset = 0
        self.sync_wanted = False
        self.high_watermark = -1

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start.offset

    def summary(self) -> LogSummary:
        summary = LogSummary(start=self.start, end_offset=self.start.offset)
        for batch in self.batches:
            summary.append(batch.epoch, batch.base_offset, batch.next_offset)
        summary.synced_offset = summary.end_offset
        return summary


class MemoryQuorum:
    def __init__(self, voters: int, observers: int = 0, seed: int = 1) -> None:
        self.now_ms = 0.0
        self.random = SimRandom(seed)
        self.voters = VoterSet.of_ids(range(1, voters + 1))
        self.nodes = {id_: MemoryNode(id_) for id_ in range(1, voters + observers + 1)}
        self.network: list[tuple[int, int, Message]] = []
        self.cut_off: list[int] = []
        self.story: list[str] = []
        self.leaders: dict[int, int] = {}
        self.committed: dict[int, tuple[int, object]] = {}

    # --- what a transcript can ask for

    def start(self, id_: int) -> None:
        node = self.nodes[id_]
        assert node.core is None
        random = self.random.stream(f"node {id_}")
        node.core = RaftCore(ReplicaKey(id_), self.voters, node.summary(), random, voters_in_log=True)
        self._carry_out(node, node.core.start(node.election, self.now_ms))

    def crash(self, id_: int) -> None:
        """Power loss: what was not synced is gone, and so is everything on its way."""
        node = self.nodes[id_]
        node.core = None
        node.batches = [batch for batch in node.batches if batch.next_offset <= node.synced_offset]
        node.sync_wanted = False
        node.high_watermark = -1
        self.network = [(sender, to, each) for sender, to, each in self.network if id_ not in (sender, to)]
        self.story.append(f"{id_} crashes, log ends at {node.end_offset}")

    def step(self, id_: int, event: Event) -> None:
        node = self.nodes[id_]
        assert node.core is not None
        self._carry_out(node, node.core.step(event, self.now_ms))

    def campaign(self, id_: int) -> None:
        """Time passes until this node's patience is at an end; the others do not notice."""
        core = self.nodes[id_].core
        assert core is not None
        kind = core.kind
        while core.kind is kind:
            self.now_ms = max(self.now_ms, core.deadline_ms)
            self.step(id_, Tick())

    def elect(self, id_: int) -> None:
        """A campaign that is won, without the details."""
        self.campaign(id_)
        self.stabilize()
        core = self.nodes[id_].core
        assert core is not None and core.is_leader
        self.story[:] = [f"{id_} leads epoch {core.epoch}"]

    def propose(self, id_: int, payload: str) -> None:
        self.step(id_, Propose(1, payload))

    def resign(self, id_: int) -> None:
        self.step(id_, Resign())

    def snapshot(self, id_: int, offset: int) -> None:
        """The log before `offset`, all committed, becomes a snapshot."""
        node = self.nodes[id_]
        assert offset <= node.high_watermark
        epoch = next(batch.epoch for batch in reversed(node.batches) if batch.next_offset <= offset)
        node.start = LogPosition(epoch, offset)
        node.batches = [batch for batch in node.batches if batch.base_offset >= offset]
        self.step(id_, LogCleaned(node.start))
        self.story.append(f"{id_} has a snapshot up to {offset} of epoch {epoch}")

    def sync(self, id_: int) -> None:
        node = self.nodes[id_]
        node.sync_wanted = False
        node.synced_offset = node.end_offset
        self.story.append(f"{id_} synced {node.synced_offset}")
        self.step(id_, LogSynced(node.synced_offset))

    def deliver(self, index: int = 0) -> None:
        sender, to, message = self.network.pop(index)
        lost = sender in self.cut_off or to in self.cut_off or self.nodes[to].core is None
        if not lost:
            self.step(to, Received(sender, message))
        elif isinstance(message, REQUESTS) and self.nodes[sender].core is not None:
            self.story.append(f"{sender} cannot reach {to}")
            self.step(sender, Unreachable(to))

    def stabilize(self) -> None:
        """Disks and network do what they have been asked to, in order, until there is nothing left to do."""
        for _ in range(10_000):
            waiting = [node.id for node in self.nodes.values() if node.sync_wanted]
            if waiting:
                self.sync(waiting[0])
            elif self.network:
                self.deliver()
            else:
                return
        raise AssertionError("it does not settle")

    def wait(self, duration_ms: float) -> None:
        """Time passes for everyone: each deadline fires when it comes, and things settle in between."""
        until_ms = self.now_ms + duration_ms
        for _ in range(10_000):
            self.stabilize()
            running = [node for node in self.nodes.values() if node.core is not None]
            due = min(running, key=lambda node: (node.core.deadline_ms, node.id))  # type: ignore[union-attr]
            assert due.core is not None
            if due.core.deadline_ms > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = max(self.now_ms, due.core.deadline_ms)
            self.step(due.id, Tick())
        raise AssertionError("too much happens at once")

    def status(self) -> None:
        for node in self.nodes.values():
            if node.core is None:
                self.story.append(f"{node.id} is down")
                continue
            core = node.core
            log = " ".join(f"{batch.base_offset}:{_payload(batch)}@{batch.epoch}" for batch in node.batches)
            start = f"snapshot {node.start.offset}, " if node.start.offset else ""
            self.story.append(
                f"{node.id} {core.kind.value} in epoch {core.epoch}, leader {core.leader_id}, "
                f"high watermark {core.high_watermark}, log {start}{log or 'empty'}"
            )

    # --- effects

    def _carry_out(self, node: MemoryNode, effects: list[Effect]) -> None:
        for effect in effects:
            line = _tell(effect)
            if line:
                self.story.append(f"{node.id} {line}")
            self._carry_out_one(node, effect)

    def _carry_out_one(self, node: MemoryNode, effect: Effect) -> None:
        match effect:
            case PersistElection(election):
                assert node.election.may_become(election), "a promise was broken"
                node.election = election
            case Append(batch):
                assert batch.base_offset == node.end_offset
                node.batches.append(batch)
            case Truncate(offset):
                node.batches = [batch for batch in node.batches if batch.next_offset <= offset]
                node.synced_offset = min(node.synced_offset, offset)
            case SyncLog():
                node.sync_wanted = True
            case Send(to, message):
                self.network.append((node.id, to, message))
            case AnswerFetch(to, request, epoch, high_watermark):
                batches = tuple(batch for batch in node.batches if batch.base_offset >= request.offset)
                answer = FetchAnswer(epoch, node.id, request.asked_at, high_watermark, batches=batches)
                self.network.append((node.id, to, answer))
            case InstallSnapshot(leader_id, position):
                self._install(node, leader_id, position)
            case HighWatermark(offset):
                self._check_committed(node, offset)
            case LeaderChanged(leader_id, epoch):
                if leader_id == node.id:
                    assert self.leaders.setdefault(epoch, node.id) == node.id, f"two leaders in epoch {epoch}"

    def _install(self, node: MemoryNode, leader_id: int, position: LogPosition) -> None:
        """As if fetched in one piece, unless the leader cannot be reached or has a newer one by now."""
        if leader_id in self.cut_off or node.id in self.cut_off or self.nodes[leader_id].start != position:
            self.step(node.id, Unreachable(leader_id))
            return
        node.start, node.batches, node.synced_offset = position, [], position.offset
        self.step(node.id, SnapshotInstalled(position))

    def _check_committed(self, node: MemoryNode, offset: int) -> None:
        assert offset > node.high_watermark, "the high watermark moved back"
        node.high_watermark = offset
        for batch in node.batches:
            if batch.next_offset <= offset:
                record = (batch.epoch, batch.payload)
                assert self.committed.setdefault(batch.base_offset, record) == record, "two committed histories"

    def check_leaders_hold_what_is_committed(self) -> None:
        for node in self.nodes.values():
            if node.core is not None and node.core.kind is Kind.LEADER:
                newest = max(self.leaders)
                if node.core.epoch == newest:
                    held = {batch.base_offset: (batch.epoch, batch.payload) for batch in node.batches}
                    for base_offset, record in self.committed.items():
                        assert base_offset < node.start.offset or held.get(base_offset) == record, "a commit was lost"


def _payload(batch: Batch) -> str:
    return "leader-change" if isinstance(batch.payload, StartOfEpoch) else str(batch.payload)


def _tell(effect: Effect) -> str:
    match effect:
        case PersistElection(election):
            voted = f", voted {election.voted.id}" if election.voted else ""
            leader = f", leader {election.leader_id}" if election.leader_id is not None else ""
            return f"persists epoch {election.epoch}{voted}{leader}"
        case Append(batch):
            return f"appends {batch.base_offset}:{_payload(batch)}@{batch.epoch}"
        case Truncate(offset):
            return f"truncates to {offset}"
        case Send(to, message):
            return f"-> {to} {_say(message)}"
        case AnswerFetch(to, request, epoch, high_watermark):
            return f"-> {to} records from {request.offset}, epoch {epoch}, high watermark {high_watermark}"
        case InstallSnapshot(leader_id, position):
            return f"installs the snapshot up to {position.offset} of {leader_id}"
        case HighWatermark(offset):
            return f"knows {offset} committed"
        case LeaderChanged(leader_id, epoch):
            return f"leader of epoch {epoch}: {'unknown' if leader_id is None else leader_id}"
    return ""


def _say(message: Message) -> str:
    match message:
        case VoteRequest(epoch, _, last, pre_vote):
            asked = "would you vote" if pre_vote else "vote"
            return f"{asked} for me in epoch {epoch}? my log ends at {last.offset} of epoch {last.epoch}"
        case VoteAnswer(epoch, leader_id, granted):
            return f"{'yes' if granted else 'no'}, epoch {epoch}{_led_by(leader_id)}"
        case BeginEpoch(epoch):
            return f"I lead epoch {epoch}"
        case EndEpoch(epoch, _, successors):
            return f"I leave epoch {epoch}, next are {', '.join(map(str, successors))}"
        case EpochAnswer(epoch, leader_id):
            return f"noted, epoch {epoch}{_led_by(leader_id)}"
        case FetchRequest(epoch, _, offset, last_epoch, high_watermark):
            return f"fetch from {offset} after epoch {last_epoch}, in epoch {epoch}, knowing {high_watermark} committed"
        case FetchAnswer(epoch, leader_id, _, diverging=diverging, snapshot=snapshot):
            if diverging is not None:
                return f"we agree up to {diverging.offset} of epoch {diverging.epoch}"
            if snapshot is not None:
                return f"start from the snapshot up to {snapshot.offset} of epoch {snapshot.epoch}"
            return f"not from me, epoch {epoch}{_led_by(leader_id)}"


def _led_by(leader_id: int | None) -> str:
    return "" if leader_id is None else f" is led by {leader_id}"
