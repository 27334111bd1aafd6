"""Quorums under random schedules.

Messages are lost, repeated and reordered, cuts are one-way, connections close, disks and snapshots are slow, replicas
resign, are crashed, restarted and wiped, and voters are added and removed.

`MemoryQuorum` checks the promises at every step. At the end everything is healed, and the quorum must agree again.
`QUIRE_RAFT_SEEDS=5000` plays more schedules.
"""

import os
from collections.abc import Callable

import pytest

from quire.raft.effects import Tick
from quire.raft.replicas import VoterSet
from simulator.random import SimRandom
from tests.raft.memory_node import MemoryNode
from tests.raft.memory_quorum import MemoryQuorum

STEPS = 2_000
SEEDS = int(os.environ.get("QUIRE_RAFT_SEEDS", "100"))


class Schedule:
    """One random schedule. Each kind of step has a weight; a step that cannot be taken is left out."""

    def __init__(self, seed: int) -> None:
        self.random = SimRandom(f"schedule {seed}")
        voters = self.random.choice([1, 2, 3, 3, 3, 4, 5])
        self.dynamic = self.random.chance(0.6)
        observers = self.random.below(3) if self.dynamic else self.random.below(2)
        self.quorum = MemoryQuorum(voters, observers, seed, dynamic=self.dynamic)
        self.quorum.slow_snapshots = True
        self.may_wipe = self.dynamic and self.random.chance(0.5)
        self.records = 0
        self.resigned: set[int] = set()
        """Replicas that do not lead until they are restarted."""
        steps: list[tuple[int, Callable[[], None]]] = [
            (900, self.deliver),
            (120, self.begin_sync),
            (120, self.finish_sync),
            (60, self.fetch_snapshot),
            (80, self.propose),
            (40, self.check),
            (200, self.tick),
            (20, self.repeat),
            (8, self.cut_off),
            (8, self.cut_one_way),
            (8, self.strand_leader),
            (16, self.heal_cuts),
            (8, self.lose_connection),
            (8, self.crash),
            (6, self.resign),
            (30, self.start),
            (20, self.snapshot),
            (20, self.change_voters),
            (10, self.wipe),
        ]
        # Each schedule has more of some faults and less of others: in even mixtures, frequent faults hide rare
        # combinations.
        self.steps = [step for weight, step in steps for _ in range(int(weight * self.random.choice([0.2, 1, 1, 4])))]

    @property
    def up(self) -> list[MemoryNode]:
        return [node for node in self.quorum.nodes.values() if node.core is not None]

    @property
    def leaders(self) -> list[MemoryNode]:
        return [node for node in self.up if node.core is not None and node.core.is_leader]

    def step(self) -> None:
        self.random.choice(self.steps)()
        if len(self.leaders) > 1:
            self.check()
        self.quorum.check_leaders_hold_what_is_committed()

    def deliver(self) -> None:
        if self.quorum.network:
            self.quorum.deliver(self.random.below(len(self.quorum.network)))

    def repeat(self) -> None:
        if self.quorum.network:
            self.quorum.duplicate(self.random.below(len(self.quorum.network)))

    def begin_sync(self) -> None:
        idle = [node for node in self.up if node.sync_wanted is not None and node.sync_running is None]
        if idle:
            self.random.choice(idle).begin_sync()

    def finish_sync(self) -> None:
        busy = [node for node in self.up if node.sync_running is not None]
        if busy:
            self.quorum.finish_sync(self.random.choice(busy).id)

    def fetch_snapshot(self) -> None:
        fetching = [node.id for node in self.up if node.snapshot_wanted is not None]
        if fetching and self.random.chance(0.3):
            self.quorum.fetch_snapshot(self.random.choice(fetching))
        elif fetching:
            self.quorum.fetch_snapshot_part(self.random.choice(fetching))

    def propose(self) -> None:
        if self.leaders:
            self.records += 1
            self.quorum.propose(self.random.choice(self.leaders).id, f"record-{self.records}")

    def check(self) -> None:
        """Asks the leader of the oldest epoch, which may be one of the past."""
        if self.leaders:
            self.quorum.check(min(self.leaders, key=lambda node: self.quorum.core(node.id).epoch).id)

    def tick(self) -> None:
        if self.up:
            self.quorum.now_ms += self.random.between(0, 40 if self.random.chance(0.8) else 1_500)
            self.quorum.step(self.random.choice(self.up).id, Tick())

    def heal_cuts(self) -> None:
        self.quorum.cut_off, self.quorum.cuts = [], set()

    def cut_off(self) -> None:
        self.quorum.cut_off = [id_ for id_ in self.quorum.nodes if self.random.chance(0.2)]

    def strand_leader(self) -> None:
        """The leader reaches at most one other node, and appends what the next leader will not have."""
        if self.leaders:
            leader = self.random.choice(self.leaders)
            ids = [id_ for id_ in self.quorum.nodes if id_ != leader.id]
            lost = ids[self.random.below(2) :]
            self.quorum.cuts = {pair for id_ in lost for pair in ((leader.id, id_), (id_, leader.id))}
            for _ in range(1 + self.random.below(3)):
                self.propose()
            if self.random.chance(0.5):
                # The others elect another leader while the leader still believes that it leads.
                for node in self.up:
                    if node.id in lost:
                        self.quorum.lose_connection(node.id, leader.id)

    def cut_one_way(self) -> None:
        ids = list(self.quorum.nodes)
        pairs = [(one, other) for one in ids for other in ids if one != other]
        self.quorum.cuts = {pair for pair in pairs if self.random.chance(0.15)}

    def lose_connection(self) -> None:
        if self.up:
            node = self.random.choice(self.up)
            peers = [id_ for id_ in self.quorum.nodes if id_ != node.id]
            if peers:
                self.quorum.lose_connection(node.id, self.random.choice(peers))

    def crash(self) -> None:
        if self.up:
            id_ = self.random.choice(self.up).id
            self.quorum.crash(id_)
            if self.random.chance(0.5):
                for node in self.up:
                    self.quorum.lose_connection(node.id, id_)

    def resign(self) -> None:
        if self.up:
            id_ = self.random.choice(self.up).id
            self.quorum.resign(id_)
            self.resigned.add(id_)

    def start(self) -> None:
        down = [node.id for node in self.quorum.nodes.values() if node.core is None]
        if down:
            id_ = self.random.choice(down)
            self.resigned.discard(id_)
            self.quorum.start(id_)

    def snapshot(self) -> None:
        node = self.random.choice(self.up) if self.up else None
        bounds = (
            [batch.next_offset for batch in node.batches if batch.next_offset <= node.high_watermark] if node else []
        )
        if node is not None and bounds:
            self.quorum.snapshot(node.id, self.random.choice(bounds))

    def change_voters(self) -> None:
        """Any change that leaves a majority with their disks."""
        if not self.leaders:
            return
        leader = self.random.choice(self.leaders)
        id_ = self.random.choice(list(self.quorum.nodes))
        voters = self.quorum.core(leader.id).voters
        wiped = [voter.key.id for voter in voters if self.quorum.is_wiped(voter)]
        if not self.dynamic:
            if self.random.chance(0.2):
                self.quorum.upgrade(leader.id)
        elif wiped:
            self.quorum.remove_voter(leader.id, wiped[0])
        elif voters.get(id_) is None:
            self.quorum.add_voter(leader.id, id_)
        elif len(voters) > 1:
            self.quorum.remove_voter(leader.id, id_)

    def wipe(self) -> None:
        """Only while a majority of any voter set that may count keeps its disk."""
        id_ = self.random.choice(list(self.quorum.nodes))
        possible = [voters for node in self.quorum.nodes.values() for voters in self._possible_voters(node)]
        is_safe = all(
            (voters.get(id_) is None or len(voters) >= 3) and not any(map(self.quorum.is_wiped, voters))
            for voters in possible
        )
        if self.may_wipe and is_safe:
            self.quorum.wipe(id_)

    def _possible_voters(self, node: MemoryNode) -> list[VoterSet]:
        history = node.log.history(self.quorum.static_voters)
        return [history.voters_of(state) for state in history.since(max(node.high_watermark, 0))]

    def heal(self) -> None:
        self.heal_cuts()
        self.quorum.slow_snapshots = False
        for id_ in self.resigned:
            if self.quorum.nodes[id_].core is not None:
                self.quorum.crash(id_)
        for node in list(self.quorum.nodes.values()):
            if node.core is None:
                self.quorum.start(node.id)
        self.quorum.wait(20_000)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_committed_records_survive_all_faults_and_the_quorum_recovers(seed: int) -> None:
    schedule = Schedule(seed)
    quorum = schedule.quorum
    for id_ in quorum.nodes:
        quorum.start(id_)
    for _ in range(STEPS):
        schedule.step()
    schedule.heal()
    assert len(schedule.leaders) == 1, quorum.story[-40:]
    leader = schedule.leaders[0]
    quorum.propose(leader.id, "the last record")
    quorum.wait(2_000)
    quorum.check_leaders_hold_what_is_committed()
    for node in quorum.nodes.values():
        assert node.core is not None
        assert node.core.high_watermark == node.core.log.end_offset == leader.end_offset, quorum.story[-40:]
        assert node.core.leader_id == leader.id
        assert node.core.voters == quorum.core(leader.id).voters
