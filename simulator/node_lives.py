"""The lives of the nodes in a run: starts each of them, again after every end, and tells the others what happened.

A node that serves again after a power loss is read from start to end before clients reach it. The ledger learns what a
power loss may have taken; in a cluster the white box decides that, which knows who holds each partition.
"""

from collections.abc import Callable, Sequence

from simulator.audits import Audits
from simulator.clients.client import Scene
from simulator.faults import Faults
from simulator.machine import Death, Flushed, Machine, MachineState
from simulator.random import SimRandom
from simulator.violation import Violation

AUDIT_CHANCE = 0.5
"""Of an audit after a start that no power loss preceded."""


class NodeLives:
    def __init__(
        self,
        scene: Scene,
        machines: Sequence[Machine],
        faults: Faults,
        audits: Audits,
        random: SimRandom,
        *,
        durable: bool,
        ended_in_cluster: Callable[[Machine, Death, Flushed], None],
    ) -> None:
        """`durable`: coordinators' topics are flushed, so a power loss takes nothing of their state."""
        self.stay_down = False
        """Whether nodes that have ended are not started again."""
        self._scene = scene
        self._machines = machines
        self._faults = faults
        self._audits = audits
        self._random = random
        self._durable = durable
        self._ended_in_cluster = ended_in_cluster
        for machine in machines:
            machine.on_start = self._starts
            machine.on_serving = self._serving
            machine.on_death = self._died
            machine.on_failure = self._failed
            machine.leaving_lives = scene.leaving_lives

    def start_soon(self, machine: Machine) -> None:
        self._scene.clock.call_soon(lambda: self._start(machine))

    def all_serve(self) -> bool:
        """Whether all nodes serve clients, with all their directories."""
        gates = self._scene.gates
        return all(
            machine.state is MachineState.SERVING
            and (machine.name not in gates or gates[machine.name].is_open)
            and not machine.has_failed_directory
            for machine in self._machines
        )

    def all_serve_after_repair(self) -> bool:
        """As `all_serve`; restarts a node with a failed directory, as an operator would who replaced the disk."""
        if not all(machine.state is MachineState.SERVING for machine in self._machines):
            return False
        for machine in self._machines:
            if machine.has_failed_directory:
                machine.die(Death.KILL)
        return self.all_serve()

    def all_down(self) -> bool:
        return all(machine.state is MachineState.DOWN for machine in self._machines)

    def coordinator_state_lost(self) -> None:
        """The end of a log that coordinators or transactions need may be lost, unless it was flushed."""
        if not self._durable:
            self._scene.ledger.transactions.power_lost()
            self._scene.offsets.power_lost()

    def coordinator_moved(self) -> None:
        """By the clock of the new coordinator a transaction may have begun long ago: then it times out."""
        if len({machine.ahead_ms for machine in self._machines}) > 1:
            self._scene.clock_changed()

    def _start(self, machine: Machine) -> None:
        if machine.state is MachineState.DOWN and not self.stay_down:
            machine.start()

    # --- What the machines report

    def _starts(self, machine: Machine) -> None:
        self._scene.lives[machine.name] = machine.life
        self._faults.at_start(machine)
        if machine.disk.calls.has_faults or machine.disk.capacity_bytes is not None:
            self._scene.troubled_lives.append(machine.life)
        if machine.has_slow_disk:
            self._scene.slow_lives.append(machine.life)

    def _serving(self, machine: Machine) -> None:
        self._scene.tell(f"{self._called(machine)} serves, life {machine.life.number}")
        if machine.name not in self._scene.gates:
            return
        if not self._scene.gates[machine.name].is_open:
            self._audits.start([machine.name], after_power_loss=True)
        elif self._random.chance(AUDIT_CHANCE):
            self._audits.start([machine.name], after_power_loss=False)

    def _died(self, machine: Machine, death: Death, flushed: Flushed) -> None:
        self._scene.tell(f"{self._called(machine)} ends: {death.value}")
        self._audits.end(machine.name)
        if self._scene.alone:
            self._ended_alone(machine, death, flushed)
        else:
            self._ended_in_cluster(machine, death, flushed)
        self._scene.clock.call_later(self._faults.restart_delay_ms(), lambda: self._start(machine))

    def _ended_alone(self, machine: Machine, death: Death, flushed: Flushed) -> None:
        ledger = self._scene.ledger
        ledger.flushed(flushed)
        if death.loses_power:
            ledger.power_lost(machine.name)
            self.coordinator_state_lost()
            if machine.name in self._scene.gates:
                self._scene.gates[machine.name].close()

    def _failed(self, machine: Machine, reason: str) -> None:
        """The node reports that it cannot continue; its operator ends the process."""
        if machine.life not in self._scene.troubled_lives:
            raise Violation("a node continues", f"{self._called(machine)} gave up without a disk error: {reason}")
        self._scene.tell(f"{self._called(machine)} gave up: {reason}")
        life = machine.life

        def end() -> None:
            if machine.life == life and machine.state is not MachineState.DOWN:
                machine.die(Death.KILL)

        self._scene.clock.call_soon(end)

    def _called(self, machine: Machine) -> str:
        return "the node" if self._scene.alone else machine.name
