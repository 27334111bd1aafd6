"""Writes metadata straight to the active controller, without a broker between: the work of a cluster of controllers.

A scribe writes the numbers 1, 2, 3 ... to one setting, one at a time. So the setting never goes back on any node, and
at the end every node has the last number that was acknowledged, or a later one whose answer was lost.
"""

from collections.abc import Sequence

from quire.controller.active_controller import ActiveController
from quire.metadata.image import BROKER
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from simulator.clients.client import Scene, SimClient
from simulator.machine import Machine
from simulator.tasks import Promise
from simulator.violation import Violation

SETTINGS = ("log.retention.ms", "log.retention.bytes", "log.roll.ms")
KEPT = "acknowledged metadata is on every node in the end"
IN_ORDER = "metadata is applied in the order in which it was written"
PATIENCE_MS = 3000.0
SET = 0


class Scribe(SimClient):
    def __init__(self, scene: Scene, name: str, machines: Sequence[Machine], setting: str) -> None:
        super().__init__(scene, name)
        self._machines = machines
        self._setting = setting
        self._number = 0
        self._seen: dict[tuple[str, int], int] = {}
        self.acknowledged = 0

    async def run(self) -> None:
        while not self.scene.finishing:
            await self.write()
            self._look()
            await self.scene.sleep(self.random.between(0.0, 150.0))
        while not await self.write():
            await self.back_off()
        while not all(self._value(machine) == self._number for machine in self._machines):
            self._look()
            await self.back_off()
        self._look()

    async def write(self) -> bool:
        """Whether the next number was acknowledged."""
        active = [machine for machine in self._machines if _controller(machine) is not None]
        if not active:
            await self.back_off()
            return False
        self._number += 1
        number = self._number
        # Two may believe that they are active.
        error = await self._ask(self.random.choice(active), str(number))
        if error is ErrorCode.NONE:
            self.acknowledged = number
        return error is ErrorCode.NONE

    async def _ask(self, machine: Machine, value: str) -> ErrorCode | None:
        """None if there is no answer."""
        answer: Promise[IncrementalAlterConfigsResponse | None] = Promise()
        config = AlterableConfig(name=self._setting, config_operation=SET, value=value)
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])

        def ask() -> None:
            controller = _controller(machine)
            if controller is None:
                answer.keep(None)
            else:
                controller.incremental_alter_configs(request).when_done(answer.keep)

        process = machine.process
        assert process is not None
        self.scene.ledger.counts.requests += 1
        self.scene.clock.call_soon(lambda: process.run(ask))  # not in this task: the node may crash
        self.scene.clock.call_later(PATIENCE_MS, lambda: answer.keep(None))
        response = await answer
        if response is None:
            self.scene.ledger.counts.lost_requests += 1
            return None
        allowed = (ErrorCode.NOT_CONTROLLER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT)
        return self.expect(response.responses[0].error_code, f"{self._setting} = {value}", *allowed)

    # --- What the nodes have

    def _look(self) -> None:
        for machine in self._machines:
            value = self._value(machine)
            if value is None:
                continue
            self.scene.ledger.counts.checks += 1
            life = (machine.name, machine.life.number)
            if value < self._seen.get(life, 0):
                raise Violation(IN_ORDER, f"{machine.name} went back from {self._seen[life]} to {value}")
            self._seen[life] = value

    def check_kept(self) -> None:
        for machine in self._machines:
            value = self._value(machine) or 0
            if value < self.acknowledged:
                raise Violation(KEPT, f"{machine.name} has {value}, and {self.acknowledged} was acknowledged")

    def _value(self, machine: Machine) -> int | None:
        """None while the node has no metadata to look at."""
        node = machine.node
        if node is None or not hasattr(node, "metadata"):
            return None
        return int(node.image.broker_configs(None).get(self._setting, "0"))


def _controller(machine: Machine) -> ActiveController | None:
    node = machine.node
    return node.metadata.active if node is not None and hasattr(node, "metadata") else None
