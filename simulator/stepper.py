"""Runs the events of a world one by one, and checks after each what must hold at any time.

A node that raises `Crashed` has reached its scheduled death. Any other exception, an error that a node logs, or a
condition that does not come true within its limit is a violation.
"""

import traceback
from collections.abc import Callable, Sequence

from simulator.clients.client import Scene
from simulator.disk import Crashed
from simulator.machine import Machine, MachineState
from simulator.node_log import NodeLog
from simulator.tasks import Task
from simulator.time_limits import START_LIMIT_MS
from simulator.violation import Violation
from simulator.white_box.white_box import WhiteBox


class Stepper:
    def __init__(self, scene: Scene, machines: Sequence[Machine], log: NodeLog, white_box: WhiteBox) -> None:
        self.tasks: list[Task] = []
        """Named by a violation if they still run when a limit has passed."""
        self._scene = scene
        self._clock = scene.clock
        self._alone = machines[0] if scene.alone else None
        self._machines = machines
        self._log = log
        self._white_box = white_box

    @property
    def now_ms(self) -> float:
        return self._clock.monotonic_ms()

    def run_for(self, duration_ms: float) -> None:
        self.run_to(self.now_ms + duration_ms)

    def run_to(self, end_ms: float) -> None:
        now_ms = self._clock.monotonic_ms
        while now_ms() < end_ms:
            self.step()

    def run_until(self, condition: Callable[[], bool], limit_ms: float, what: str) -> None:
        """Violation if the condition is not true after `limit_ms`; `what` says what took too long."""
        end_ms = self.now_ms + limit_ms
        while not condition():
            if self.now_ms > end_ms:
                waiting = [repr(task) for task in self.tasks if not task.ended]
                raise Violation("the node never hangs", f"{what} took more than {limit_ms:.0f} ms; {waiting} still run")
            self.step()

    def step(self) -> None:
        try:
            self._clock.step()
        except Crashed as crash:
            self._machine_of(crash).die_as_scheduled(crash)
        except Violation:
            raise
        except Exception as error:
            self._scene.tell(traceback.format_exc())
            raise Violation("no callback raises", f"{type(error).__name__}: {error}") from error
        if self._log.unexpected is not None:
            raise Violation("no request fails unexpectedly", self._log.unexpected)
        if self._alone is not None:
            self._check_that_it_starts(self._alone)
        self._white_box.follow(self._clock.monotonic_ms())

    def _machine_of(self, crash: Crashed) -> Machine:
        return next(machine for machine in self._machines if machine.disk.calls.name == crash.disk)

    def _check_that_it_starts(self, machine: Machine) -> None:
        """A node on its own must start whatever happens; one of several may have to wait for the others."""
        if machine.state is not MachineState.STARTING:
            return
        late = self.now_ms - machine.started_at_ms > START_LIMIT_MS
        if late and machine.life not in self._scene.troubled_lives:
            raise Violation("the node never hangs", f"it has not started within {START_LIMIT_MS:.0f} ms")
