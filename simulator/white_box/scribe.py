"""Writes metadata straight to the active controller, without a broker between: the work of a cluster of controllers.

A scribe writes the numbers 1, 2, 3 ... to one setting, one at a time. So the setting never goes back on any node, and
at the end every node has the last number that was acknowledged, or a later one whose answer was lost.
"""

from collections.abc import Sequence

from quire.metadata.image import BROKER
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from simulator.clients.client import Scene, SimClient
from simulator.machine import Machine
from simulator.violation import Violation
from simulator.white_box.active_controllers import ActiveControllers

SETTINGS = ("log.retention.ms", "log.retention.bytes", "log.roll.ms")
KEPT = "acknowledged metadata is on every node in the end"
IN_ORDER = "metadata is applied in the order in which it was written"
SET = 0


class Scribe(SimClient):
    def __init__(self, scene: Scene, name: str, machines: Sequence[Machine], setting: str) -> None:
        super().__init__(scene, name)
        self._machines = machines
        self._controllers = ActiveControllers(scene, machines, self.random)
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
        machine = self._controllers.any()
        if machine is None:
            await self.back_off()
            return False
        self._number += 1
        number = self._number
        error = await self._ask(machine, str(number))
        if error is ErrorCode.NONE:
            self.acknowledged = number
        return error is ErrorCode.NONE

    async def _ask(self, machine: Machine, value: str) -> ErrorCode | None:
        """None if there is no answer."""
        config = AlterableConfig(name=self._setting, config_operation=SET, value=value)
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = await self._controllers.ask(machine, lambda active: active.incremental_alter_configs(request))
        if response is None:
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
