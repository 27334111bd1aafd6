"""What goes wrong in a run, and when.

Every plan has its own mix: some kinds of faults, each more or less often, so that rare combinations are not drowned by
frequent ones. `run` is a task that strikes until it is told to stop; `stop` ends everything that is still going wrong.
"""

import errno
from collections.abc import Callable

from simulator.clients.client import NODE_HOST, Scene
from simulator.machine import Death, Machine, State
from simulator.network import Conditions
from simulator.operations import Operation
from simulator.plan import Plan
from simulator.random import SimRandom

Strike = Callable[[], None]

RESTART_MS = (5.0, 1500.0)
STILL_OPERATING = (State.STARTING, State.SERVING)


class Faults:
    def __init__(self, scene: Scene, machine: Machine, random: SimRandom, plan: Plan, clients: list[str]) -> None:
        self._scene = scene
        self._machine = machine
        self._random = random
        self._plan = plan
        self._clients = clients
        self._stopped = False
        self._failed_life = -1
        """The last life in which a call to the disk failed."""
        self._healthy = scene.network.conditions
        self.struck: dict[str, int] = {}
        """How often each kind of fault happened."""

    def _kinds(self) -> dict[str, Strike]:
        return {
            "kill": lambda: self._end(Death.KILL),
            "power loss": lambda: self._end(self._random.choice((Death.POWER_LOSS, Death.REORDERING_POWER_LOSS))),
            "clean stop": self._stop_cleanly,
            "broken connections": self._break_connections,
            "cut network": self._cut_network,
            "bad network": self._spoil_network,
            "slow disk": self._slow_disk,
            "disk error": self._fail_disk,
            "full disk": self._fill_disk,
            "clock jump": self._jump_clock,
            "stall": self._stall,
            "bad own requests": self._spoil_own_requests,
        }

    async def run(self) -> None:
        kinds = self._kinds()
        hat = [kind for kind, weight in self._plan.faults.items() for _ in range(weight)]
        while hat and not self._stopped:
            await self._scene.sleep(self._random.between(0.0, 2 * self._plan.fault_pause_ms))
            if not self._stopped:
                kinds[self._random.choice(hat)]()

    def stop(self) -> None:
        self._stopped = True
        self._heal_network()
        self._heal_own_requests()
        self._machine.slow_jobs()
        self._machine.disk.calls.forget_faults()
        self._machine.disk.capacity_bytes = None
        self._machine.spare()
        if self._failed_life == self._machine.life.number and self._machine.state is not State.DOWN:
            # The node may not even know yet: a job that takes long will tell it.
            self._scene.tell("the disk that has failed is replaced")
            self._machine.die(Death.KILL)

    def restart_delay_ms(self) -> float:
        return self._random.between(*RESTART_MS)

    def at_start(self) -> None:
        """A node may also die while it starts: recovery has to stand being interrupted anywhere."""
        deaths = [death for death in Death if self._plan.faults.get("power loss" if death.loses_power else "kill")]
        if deaths and not self._stopped and self._random.chance(0.2):
            death = self._random.choice(deaths)
            self._struck(death.value + " during the start", f"node will be {death.value} during its start")
            self._machine.doom(death, 1 + self._random.below(60))

    # The end of the node

    def _end(self, death: Death) -> None:
        """At once, or in the middle of some change on disk."""
        if self._machine.state is State.DOWN:
            return
        if self._random.chance(0.6):
            self._struck(death.value + " in the middle of a write", f"node will be {death.value}")
            self._machine.doom(death, 1 + self._random.below(40))
        else:
            self._struck(death.value)
            self._machine.die(death)

    def _stop_cleanly(self) -> None:
        if self._machine.state is State.SERVING:
            self._struck("clean stop")
            self._machine.stop()

    # The network

    def _break_connections(self) -> None:
        count = self._scene.network.break_connections(NODE_HOST, self._random.choice([None, *self._clients]))
        self._struck("broken connections", f"{count} connections broke")

    def _cut_network(self) -> None:
        client = self._random.choice(self._clients)
        one_way = self._random.chance(0.5)
        ends = (client, NODE_HOST) if self._random.chance(0.5) else (NODE_HOST, client)
        self._struck("cut network", f"cut from {ends[0]} to {ends[1]}" + (", one way" if one_way else ""))
        self._scene.network.cut(*ends, one_way=one_way)
        self._later(self._random.between(10.0, 6000.0), self._scene.network.heal)

    def _spoil_network(self) -> None:
        self._struck("bad network")
        self._scene.network.conditions = Conditions(
            slow_chance=self._random.between(0.0, 0.1),
            slow_ms=self._random.between(10.0, 1000.0),
            break_chance=self._random.choice((0.0, 0.002, 0.02)),
            small_segment_chance=self._random.between(0.0, 1.0),
            segment_bytes=self._random.choice((100, 1500, 16384)),
            window_bytes=self._random.choice((2000, 65536)),
        )
        self._later(self._random.between(100.0, 4000.0), self._heal_network)

    def _heal_network(self) -> None:
        self._scene.network.conditions = self._healthy
        self._scene.network.heal()

    def _spoil_own_requests(self) -> None:
        """What the node's parts ask of each other is late or lost, as between machines."""
        self._struck("bad own requests")
        conditions = self._machine.own_conditions
        conditions.delay_chance = self._random.between(0.0, 0.5)
        conditions.longest_delay_ms = self._random.choice((5.0, 200.0, 8000.0))
        conditions.loss_chance = self._random.choice((0.0, 0.02, 0.2))
        self._later(self._random.between(100.0, 4000.0), self._heal_own_requests)

    def _heal_own_requests(self) -> None:
        conditions = self._machine.own_conditions
        conditions.delay_chance = conditions.loss_chance = 0.0

    # The disk and the clock

    def _slow_disk(self) -> None:
        longest_ms = self._random.between(50.0, 2000.0)
        self._struck("slow disk", f"jobs take up to {longest_ms:.0f} ms")
        self._machine.slow_jobs(longest_ms)
        self._scene.slow_lives.append(self._machine.life.number)
        self._later(self._random.between(100.0, 4000.0), lambda: self._machine.slow_jobs())

    def _fail_disk(self) -> None:
        """One call fails; somebody restarts the node a while later, if it is still there."""
        kind = self._random.choice(
            ("write", "sync", "sync", "rename", "create", "truncate", "remove", "sync_dir", "read")
        )
        machine, skipped = self._machine, self._random.below(5)
        seen = 0

        def matches(operation: Operation) -> bool:
            nonlocal seen
            if operation.kind != kind:
                return False
            seen += 1
            if seen <= skipped:
                return False
            machine.sync_failed = machine.sync_failed or kind in ("sync", "sync_dir")
            self._failed_life = machine.life.number
            self._scene.tell(f"the disk fails to {kind} {operation.path}")
            return True

        self._struck("disk error", f"a {kind} will fail")
        machine.disk.fail_when(matches, errno.EIO)
        self._disk_has_trouble()
        self._later(self._random.between(500.0, 4000.0), self._restart)

    def _fill_disk(self) -> None:
        disk = self._machine.disk
        room = self._random.below(20_000)
        self._struck("full disk", f"{room} bytes are left")
        disk.capacity_bytes = None
        disk.capacity_bytes = disk.total_bytes("/") - disk.free_bytes("/") + room
        self._disk_has_trouble()
        self._later(self._random.between(100.0, 3000.0), self._make_room)

    def _disk_has_trouble(self) -> None:
        self._scene.troubled_lives.append(self._machine.life.number)

    def _make_room(self) -> None:
        self._machine.disk.capacity_bytes = None
        self._scene.tell("the disk has room again")

    def _restart(self) -> None:
        self._scene.tell("somebody restarts the node because of its disk")
        if self._machine.state is State.SERVING and self._random.chance(0.5):
            self._machine.stop()
        elif self._machine.state in STILL_OPERATING:
            self._machine.die(Death.KILL)

    def _jump_clock(self) -> None:
        minutes = self._random.below(100) - 50
        self._struck("clock jump", f"the clock is wrong by {minutes} minutes")
        self._scene.clock_changes += 1
        self._machine.jump_clock(minutes * 60_000)

    def _stall(self) -> None:
        duration_ms = self._random.between(100.0, 30_000.0)
        self._struck("stall", f"the node stands still for {duration_ms:.0f} ms")
        self._scene.clock_changes += 1
        self._machine.stall(duration_ms)

    # Telling

    def _struck(self, kind: str, line: str | None = None) -> None:
        self.struck[kind] = self.struck.get(kind, 0) + 1
        self._scene.tell(f"fault: {line or kind}")

    def _later(self, delay_ms: float, action: Callable[[], None]) -> None:
        def act() -> None:
            if not self._stopped:
                action()

        self._scene.clock.call_later(delay_ms, act)
