"""Requests to the active controller, without a connection between: for clients of a cluster of controllers only."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from quire.controller.active_controller import ActiveController
from quire.pending import Pending
from simulator.clients.client import Scene
from simulator.machine import Machine
from simulator.random import SimRandom
from simulator.tasks import Promise

PATIENCE_MS = 3000.0

A = TypeVar("A")


class ActiveControllers:
    """The controllers that believe they are active: there may be two at a time."""

    def __init__(self, scene: Scene, machines: Sequence[Machine], random: SimRandom) -> None:
        self._scene = scene
        self._machines = machines
        self._random = random

    def any(self) -> Machine | None:
        active = [machine for machine in self._machines if _controller(machine) is not None]
        return self._random.choice(active) if active else None

    async def ask(self, machine: Machine, request: Callable[[ActiveController], Pending[A]]) -> A | None:
        """None if there is no answer: the outcome is unknown."""
        answer: Promise[A | None] = Promise()

        def ask() -> None:
            controller = _controller(machine)
            if controller is None:
                answer.keep(None)
            else:
                request(controller).when_done(answer.keep)

        process, scene = machine.process, self._scene
        assert process is not None
        scene.ledger.counts.requests += 1
        scene.clock.call_soon(lambda: process.run(ask))  # not in this task: the node may crash
        scene.clock.call_later(PATIENCE_MS, lambda: answer.keep(None))
        response = await answer
        if response is None:
            scene.ledger.counts.lost_requests += 1
        return response


def _controller(machine: Machine) -> ActiveController | None:
    node = machine.node
    return node.metadata.active if node is not None and hasattr(node, "metadata") else None
