"""When faults happen: in bursts with lulls in between while clients have written too little, otherwise at any time."""

from dataclasses import replace

from simulator.fault_counts import FaultCounts
from simulator.faults import BURST_MS, Faults
from simulator.main import Kind
from simulator.random import SimRandom
from simulator.tasks import Task
from simulator.world import World

PAUSE_MS = 100.0


class Attack:
    """Only faults, in a cluster that does not run."""

    def __init__(self) -> None:
        plan = Kind(clusters=True).plan(1)
        plan = replace(plan, faults={"clock jump": 1, "broken connections": 1}, fault_pause_ms=PAUSE_MS)
        world = World(1, plan, cast=lambda _: [])
        self.scene, self.clock = world.scene, world.clock
        self.faults = Faults(world.scene, world.machines, SimRandom(1), plan, [])
        self.task = Task(self.clock, "faults", self.faults.run())

    def announced_in(self, duration_ms: float) -> int:
        before = announced(self.faults.counts)
        self.clock.run_for(duration_ms)
        return announced(self.faults.counts) - before


def announced(counts: FaultCounts) -> int:
    return sum(counts.announced.values())


def test_faults_never_rest_while_clients_write_enough() -> None:
    attack = Attack()
    for _ in range(20):
        assert attack.announced_in(BURST_MS[1]) > BURST_MS[1] / PAUSE_MS / 2


def test_after_a_burst_no_new_faults_begin_until_clients_have_caught_up() -> None:
    attack = Attack()
    attack.scene.needs_lull = True
    assert attack.announced_in(BURST_MS[0]) > BURST_MS[0] / PAUSE_MS / 2
    attack.clock.run_for(BURST_MS[1] - BURST_MS[0] + 2 * PAUSE_MS)
    assert attack.announced_in(60_000.0) == 0
    attack.scene.needs_lull = False
    assert attack.announced_in(BURST_MS[0]) > BURST_MS[0] / PAUSE_MS / 2


def test_a_lull_ends_with_the_attack() -> None:
    attack = Attack()
    attack.scene.needs_lull = True
    attack.clock.run_for(2 * BURST_MS[1])
    attack.faults.begin_no_more()
    before = announced(attack.faults.counts)
    attack.clock.run_for(BURST_MS[0])
    assert attack.task.ended
    assert announced(attack.faults.counts) == before
