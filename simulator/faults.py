"""The faults of a run, and when they happen.

Every plan has its own mix of faults and frequencies, so that rare combinations are not hidden by frequent ones. `run`
is a task that causes faults until it is stopped; `stop` ends all faults that are still active. In a cluster each fault
strikes one node, and several nodes may be struck at once. If the plan says so, a majority of the voters always works:
then the cluster must make progress all the time, not only at the end.

Where faults come faster than nodes restart and sessions expire, most partitions have no leader most of the time, and
clients write little. Then faults come in bursts: after each a lull lasts until clients have caught up. What has begun
ends by itself meanwhile.
"""

import errno
from collections.abc import Callable, Sequence

from simulator.clients.client import Scene
from simulator.disk_calls import DiskCall
from simulator.fault_counts import Effect, FaultCounts
from simulator.flipped_bits import FlippedBits
from simulator.life import Life
from simulator.machine import Death, Machine, MachineState
from simulator.network_faults import NetworkFaults
from simulator.plan import Plan
from simulator.random import SimRandom
from simulator.tasks import sleep

Strike = Callable[[], None]

RESTART_MS = (5.0, 1500.0)
LONG_RESTART_MS = (1500.0, 12_000.0)
PAUSES_MS = ((20.0, 500.0), (500.0, 6000.0), (6000.0, 30_000.0))
RATES = (0.5, 0.9, 0.99, 1.01, 1.1, 2.0)
BURST_MS = (5000.0, 15_000.0)
LULL_POLL_MS = 100.0
LEADER_CHANCE = 0.4
AT_ONCE = ("kill", "power loss", "clean stop", "pause")
STILL_OPERATING = (MachineState.STARTING, MachineState.SERVING)
TAKES_A_NODE_AWAY = (
    "kill",
    "power loss",
    "clean stop",
    "disk error",
    "full disk",
    "pause",
    "partition",
    "isolation",
    "several at once",
    "slow links",
    "flipped bits",
)


class Faults:
    def __init__(
        self, scene: Scene, machines: Sequence[Machine], random: SimRandom, plan: Plan, clients: list[str]
    ) -> None:
        self._scene = scene
        self._machines = machines
        self._random = random
        self._plan = plan
        self._ending = self._stopped = self._in_lull = False
        self._burst_ends_ms = 0.0
        self._failed_lives: list[Life] = []
        """Lives in which a call to the disk failed."""
        self._dying: dict[str, None] = {}
        """Nodes that will die soon, or were asked to stop."""
        nodes = [machine.name for machine in machines]
        self._network = NetworkFaults(scene, nodes, clients, random, self._announce, self._later)
        self.counts = FaultCounts()
        self._flipped_bits = FlippedBits(machines, random, scene.moving, scene.damaged)

    def _kinds(self) -> dict[str, Callable[[Machine], None]]:
        network = self._network
        return {
            "kill": lambda machine: self._end(machine, Death.KILL),
            "power loss": lambda machine: self._end(
                machine, self._random.choice((Death.POWER_LOSS, Death.REORDERING_POWER_LOSS))
            ),
            "clean stop": self._stop_cleanly,
            "broken connections": lambda machine: network.break_connections(machine.name),
            "cut network": lambda machine: network.cut_off_a_client(machine.name),
            "bad network": lambda _: network.spoil(),
            "slow disk": self._slow_disk,
            "disk error": self._fail_disk,
            "full disk": self._fill_disk,
            "clock jump": self._jump_clock,
            "pause": self._pause,
            "bad own requests": self._spoil_own_requests,
            "clock drift": self._drift,
            "partition": lambda machine: network.partition(machine.name),
            "isolation": lambda machine: network.isolate(machine.name),
            "several at once": lambda _: self._strike_several(),
            "slow links": lambda machine: network.slow_down(machine.name),
            "flipped bits": self._flip_bits,
            "refused connections": lambda machine: network.refuse(machine.name),
        }

    async def run(self) -> None:
        kinds = self._kinds()
        hat = [kind for kind, weight in self._plan.faults.items() for _ in range(weight)]
        self._begin_burst()
        while hat and not self._ending:
            await sleep(self._scene.clock, self._random.between(0.0, 2 * self._plan.fault_pause_ms))
            if self._scene.needs_lull and self._scene.clock.monotonic_ms() >= self._burst_ends_ms:
                await self._lull()
            if not self._ending:
                kind = self._random.choice(hat)
                machine = self._victim()
                if kind not in TAKES_A_NODE_AWAY or self._can_spare(machine):
                    kinds[kind](machine)

    def _begin_burst(self) -> None:
        self._burst_ends_ms = self._scene.clock.monotonic_ms() + self._random.between(*BURST_MS)

    async def _lull(self) -> None:
        self._scene.tell("no new faults until clients have caught up")
        self._in_lull = True
        while self._scene.needs_lull and not self._ending:
            await sleep(self._scene.clock, LULL_POLL_MS)
        self._in_lull = False
        self._begin_burst()

    def begin_no_more(self) -> None:
        """Those that are active end by themselves."""
        self._ending = True

    @property
    def paused(self) -> bool:
        return any(machine.is_paused for machine in self._machines)

    def stop(self) -> None:
        self._stopped = self._ending = True
        self._scene.drifting.clear()
        self._scene.clock_changed()
        self._network.heal()
        self._heal_own_requests()
        for machine in self._machines:
            self._cure(machine)

    def _cure(self, machine: Machine) -> None:
        machine.resume()
        machine.drift(1.0)
        machine.slow_jobs()
        machine.disk.calls.forget_faults()
        machine.disk.capacity_bytes = None
        machine.cancel_death()
        if machine.life in self._failed_lives and machine.state is not MachineState.DOWN:
            # The node may not have noticed the failure yet: the job may still be running.
            self._scene.tell(f"the failed disk{self._of(machine)} is replaced")
            machine.die(Death.KILL)

    def restart_delay_ms(self) -> float:
        long = not self._scene.alone and self._random.chance(0.2)
        return self._random.between(*(LONG_RESTART_MS if long and not self._stopped else RESTART_MS))

    def at_start(self, machine: Machine) -> None:
        """A node may also die during its start: recovery must tolerate an interruption anywhere."""
        self._dying.pop(machine.name, None)
        deaths = [death for death in Death if self._plan.faults.get("power loss" if death.loses_power else "kill")]
        if deaths and not (self._ending or self._in_lull) and self._random.chance(0.2):
            death = self._random.choice(deaths)
            effect = self._begins(f"{death.value} during the start", of=machine)
            machine.schedule_death(death, 1 + self._random.below(60), effect)

    # --- Choosing nodes

    def _victim(self) -> Machine:
        """Any; often one that leads a partition."""
        if self._scene.alone:
            return self._machines[0]
        leaders = [book.leadership.leader for book in self._scene.ledger.live_partitions()]
        if leaders and self._random.chance(LEADER_CHANCE):
            leader = self._random.choice(leaders)
            return next((machine for machine in self._machines if machine.name == leader), self._machines[0])
        return self._random.choice(self._machines)

    def _strike_several(self) -> None:
        """Two or more nodes at the same time, sometimes all of them, in the same way."""
        if self._plan.keeps_majority:
            return
        count = self._random.choice((2, 2, len(self._machines)))
        chosen = sorted(self._machines, key=lambda _: self._random.below(1 << 30))[:count]
        kind = self._random.choice([kind for kind in AT_ONCE if self._plan.faults.get(kind)] or ["kill"])
        self._tell(f"several at once: {kind} of {', '.join(machine.name for machine in chosen)}")
        for machine in chosen:
            self._kinds()[kind](machine)

    def _can_spare(self, victim: Machine) -> bool:
        """Whether a majority of the voters works without this node; a node on its own is never spared."""
        if self._scene.alone or not self._plan.keeps_majority or not victim.votes:
            return True
        partitioned = self._network.partitioned
        voters = [machine for machine in self._machines if machine.votes]
        working = [
            machine
            for machine in voters
            if machine is not victim and self._works(machine) and machine.name not in partitioned
        ]
        return len(working) > len(voters) // 2

    def _works(self, machine: Machine) -> bool:
        in_trouble = machine.life in self._scene.troubled_lives or machine.name in self._dying
        return machine.state is MachineState.SERVING and not machine.is_paused and not in_trouble

    # --- The end of a node

    def _end(self, machine: Machine, death: Death) -> None:
        """Ends a node at once, or during one of the next changes on disk."""
        if machine.state is MachineState.DOWN:
            return
        if self._random.chance(0.6):
            kind, line = f"{death.value} during a write", f"{death.value} during one of the next writes"
            effect = self._begins(kind, line, of=machine)
            self._dying[machine.name] = None
            machine.schedule_death(death, 1 + self._random.below(40), effect)
        else:
            self._strikes(death.value, of=machine)
            machine.die(death)

    def _stop_cleanly(self, machine: Machine) -> None:
        if machine.state is MachineState.SERVING:
            self._strikes("clean stop", of=machine)
            self._dying[machine.name] = None
            machine.stop()

    # --- Requests within a node

    def _spoil_own_requests(self, machine: Machine) -> None:
        """Requests between the parts of the node are delayed or lost, as between machines."""
        conditions = machine.own_conditions
        conditions.felt = self._begins("bad own requests", of=machine)
        conditions.delay_chance = self._random.between(0.0, 0.5)
        conditions.longest_delay_ms = self._random.choice((5.0, 200.0, 8000.0))
        conditions.loss_chance = self._random.choice((0.0, 0.02, 0.2))
        self._later(self._random.between(100.0, 4000.0), self._heal_own_requests)

    def _heal_own_requests(self) -> None:
        for machine in self._machines:
            machine.own_conditions.delay_chance = machine.own_conditions.loss_chance = 0.0

    # --- The disk

    def _slow_disk(self, machine: Machine) -> None:
        longest_ms = self._random.between(50.0, 2000.0)
        effect = self._begins("slow disk", f"jobs take up to {longest_ms:.0f} ms", of=machine)
        machine.slow_jobs(longest_ms, effect)
        self._scene.slow_lives.append(machine.life)
        self._later(self._random.between(100.0, 4000.0), machine.slow_jobs)

    def _fail_disk(self, machine: Machine) -> None:
        """One call fails; an operator restarts the node later, if it still runs."""
        kind = self._random.choice(
            ("write", "sync", "sync", "rename", "create", "truncate", "remove", "sync_dir", "read")
        )
        skipped = self._random.below(5)
        seen = 0
        effect = self._begins("disk error", f"a {kind} will fail", of=machine)

        def matches(operation: DiskCall) -> bool:
            nonlocal seen
            if operation.kind != kind:
                return False
            seen += 1
            if seen <= skipped:
                return False
            machine.sync_failed = machine.sync_failed or kind in ("sync", "sync_dir")
            self._failed_lives.append(machine.life)
            self._scene.tell(f"the disk{self._of(machine)} fails: {kind} {operation.path}")
            effect()
            return True

        machine.disk.fail_when(matches, errno.EIO)
        self._scene.troubled_lives.append(machine.life)
        self._later(self._random.between(500.0, 4000.0), lambda: self._restart(machine))

    def _fill_disk(self, machine: Machine) -> None:
        disk = machine.disk
        room = self._random.below(20_000)
        disk.filled = self._begins("full disk", f"{room} bytes are left", of=machine)
        disk.capacity_bytes = None
        disk.capacity_bytes = disk.total_bytes("/") - disk.free_bytes("/") + room
        self._scene.troubled_lives.append(machine.life)
        self._later(self._random.between(100.0, 3000.0), lambda: self._make_room(machine))

    def _flip_bits(self, machine: Machine) -> None:
        """A node is killed, and its disk damages one copy of some batches before it starts again."""
        # After a failed sync the end of the process is that of the machine.
        may_be_killed = machine.state is MachineState.SERVING and not machine.sync_failed
        spots = self._flipped_bits.choose(machine) if may_be_killed else []
        if spots:
            told = ", ".join(f"bit {spot.bit} of byte {spot.position} of {spot.path}" for spot in spots)
            self._strikes("flipped bits", f"bits flip: {told}", of=machine)
            machine.die(Death.KILL)
            for spot in spots:
                machine.disk.flip(*spot)

    def _make_room(self, machine: Machine) -> None:
        machine.disk.capacity_bytes = None
        self._scene.tell(f"the disk{self._of(machine)} has space again")

    def _restart(self, machine: Machine) -> None:
        self._scene.tell(f"an operator restarts the node because of its disk{self._of(machine)}")
        if machine.state is MachineState.SERVING and self._random.chance(0.5):
            machine.stop()
        elif machine.state in STILL_OPERATING:
            machine.die(Death.KILL)

    # --- Time

    def _jump_clock(self, machine: Machine) -> None:
        minutes = self._random.below(100) - 50
        self._strikes("clock jump", f"the clock is wrong by {minutes} minutes", of=machine)
        self._scene.clock_changed()
        machine.jump_clock(minutes * 60_000)

    def _drift(self, machine: Machine) -> None:
        rate = self._random.choice(RATES)
        self._strikes("clock drift", f"the clock runs at {rate:g} times the speed", of=machine)
        self._scene.drifting[machine.name] = None
        machine.drift(rate)
        self._later(self._random.between(100.0, 8000.0), lambda: self._end_drift(machine))

    def _end_drift(self, machine: Machine) -> None:
        machine.drift(1.0)
        self._scene.drifting.pop(machine.name, None)
        self._scene.clock_changed()

    def _pause(self, machine: Machine) -> None:
        if machine.is_paused or machine.state not in STILL_OPERATING:
            return
        duration_ms = self._random.between(*self._random.choice(PAUSES_MS))
        self._strikes("pause", f"the node is paused for {duration_ms:.0f} ms", of=machine)
        self._scene.clock_changed()
        life = machine.life
        machine.pause()
        self._scene.clock.call_later(duration_ms, lambda: self._resume(machine, life))

    def _resume(self, machine: Machine, life: Life) -> None:
        if machine.life == life and machine.is_paused:
            self._scene.tell(f"the node{self._of(machine)} continues")
            self._scene.clock_changed()
            machine.resume()

    # --- Announcing

    def _of(self, machine: Machine) -> str:
        return "" if self._scene.alone else f" of {machine.name}"

    def _begins(self, kind: str, line: str | None = None, *, of: Machine) -> Effect:
        """Tells of a fault, which counts when the effect is called."""
        where = "" if self._scene.alone else f"{of.name}: "
        return self._announce(kind, f"{where}{line or kind}")

    def _strikes(self, kind: str, line: str | None = None, *, of: Machine) -> None:
        """Tells of a fault of a machine that takes effect at once, unless the machine is down."""
        effect = self._begins(kind, line, of=of)
        if of.state is not MachineState.DOWN:
            effect()

    def _announce(self, kind: str, line: str) -> Effect:
        self._tell(line)
        return self.counts.announce(kind)

    def _tell(self, line: str) -> None:
        self._scene.tell(f"fault: {line}")

    def _later(self, delay_ms: float, action: Callable[[], None]) -> None:
        def act() -> None:
            if not self._stopped:
                action()

        self._scene.clock.call_later(delay_ms, act)
