"""Quorums under random schedules: messages lost and reordered, disks slow, replicas cut off, crashed and restarted.

`MemoryQuorum` checks the promises at every step. At the end everything is healed, and the quorum must agree again.
"""

import pytest

from quire.raft.effects import Tick
from quire.raft.roles.role import Kind
from simulator.random import SimRandom
from tests.raft.memory_quorum import MemoryQuorum

STEPS = 400


def one_step(quorum: MemoryQuorum, random: SimRandom, number: int) -> None:
    up = [node for node in quorum.nodes.values() if node.core is not None]
    down = [node for node in quorum.nodes.values() if node.core is None]
    leaders = [node for node in up if node.core is not None and node.core.is_leader]
    chosen = random.below(100)
    if chosen < 50 and quorum.network:
        quorum.deliver(random.below(len(quorum.network)))
    elif chosen < 60 and any(node.sync_wanted for node in up):
        quorum.sync(random.choice([node.id for node in up if node.sync_wanted]))
    elif chosen < 75 and leaders:
        quorum.propose(random.choice(leaders).id, f"record-{number}")
    elif chosen < 88 and up:
        quorum.now_ms += random.between(0, 600)
        quorum.step(random.choice(up).id, Tick())
    elif chosen < 91:
        quorum.cut_off = [node.id for node in quorum.nodes.values() if random.chance(0.2)]
    elif chosen < 94 and up:
        quorum.crash(random.choice(up).id)
    elif chosen < 97 and down:
        quorum.start(random.choice(down).id)
    elif leaders and random.chance(0.3):
        leader = random.choice(leaders)
        if leader.high_watermark > leader.start.offset:
            bounds = [batch.next_offset for batch in leader.batches if batch.next_offset <= leader.high_watermark]
            if bounds:
                quorum.snapshot(leader.id, random.choice(bounds))
    quorum.check_leaders_hold_what_is_committed()


def heal(quorum: MemoryQuorum) -> None:
    quorum.cut_off = []
    for node in quorum.nodes.values():
        if node.core is None:
            quorum.start(node.id)
    quorum.wait(20_000)


@pytest.mark.parametrize("seed", range(150))
def test_committed_records_survive_whatever_happens_and_the_quorum_recovers(seed: int) -> None:
    random = SimRandom(f"schedule {seed}")
    quorum = MemoryQuorum(voters=random.choice([1, 2, 3, 3, 3, 4, 5]), observers=random.below(2), seed=seed)
    for id_ in quorum.nodes:
        quorum.start(id_)
    for number in range(STEPS):
        one_step(quorum, random, number)
    heal(quorum)
    leaders = [node for node in quorum.nodes.values() if node.core is not None and node.core.kind is Kind.LEADER]
    assert len(leaders) == 1, quorum.story[-40:]
    quorum.propose(leaders[0].id, "the last record")
    quorum.wait(2_000)
    quorum.check_leaders_hold_what_is_committed()
    for node in quorum.nodes.values():
        assert node.core is not None
        assert node.core.high_watermark == node.core.log.end_offset == leaders[0].end_offset, quorum.story[-40:]
        assert node.core.leader_id == leaders[0].id
