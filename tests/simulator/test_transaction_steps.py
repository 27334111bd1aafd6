"""One transaction over two partitions and a group's offsets, with a fault at each of its steps in turn.

The node dies in the middle of the n-th change on disk, for every n; or the n-th request or answer between its own parts
is lost or late. The producer then continues as usual, and finishes another transaction.
The first transaction must end in the same way everywhere, and no client may be stuck; the simulator checks both.
"""

import pytest

from simulator.clients.client import SimClient
from simulator.clients.transaction_requests import Fenced
from simulator.clients.transactional_producer import TransactionalProducer
from simulator.ledger import PartitionBook
from simulator.machine import Death
from simulator.main import summary
from simulator.own_requests import LOST
from simulator.plan import Plan, TopicPlan
from simulator.report import RunReport
from simulator.world import World

MORE_THAN_ENOUGH = 500
ENOUGH = 8
"""With fewer steps the faults would not hit the transaction."""

QUIET_MS = 4_000.0
"""Longer than the transaction, a restart and a retry take."""
TIMEOUT_MS = 1_000

BOTH = pytest.mark.parametrize("protocol", [1, 2])
COMMIT, ABORT = "committed", "aborted"
UNHEARD = "committed by a producer that is gone before it gets the response"
REPLACED = "aborted by the next producer"
TIMED_OUT = "aborted by its timeout"
EVERY_WAY = pytest.mark.parametrize("end", [COMMIT, ABORT, UNHEARD, REPLACED, TIMED_OUT])


def plan(*, durable: bool) -> Plan:
    kept = {"flush.messages": "1"} if durable else {}
    return Plan(
        duration_ms=QUIET_MS,
        faults={},
        fault_pause_ms=1000.0,
        node_settings={
            "log.dirs": "/data",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
        },
        topics=[TopicPlan("ledger", 2, kept, transactional=True)],
        plain_acks=[],
        idempotent_producers=0,
        consumers=0,
        session_consumers=0,
        misbehaviour=0.0,
        vandal=False,
        durable=durable,
        coordinator_settings=kept,
    )


class Scripted(TransactionalProducer):
    """Causes the fault, then runs a transaction over all partitions and a group's offsets."""

    def __init__(self, world: World, protocol: int, end: str) -> None:
        super().__init__(world.scene, "producer", "id", protocol, ["group"], abandons=False)
        self._timeout_ms = TIMEOUT_MS
        self.world = world
        self.end = end
        self.troubled = False

    async def run(self) -> None:
        await self._live_session()
        self.make_trouble()
        try:
            await self._transact()
        except Fenced:
            self._session = None
        await self._finish()
        self.troubled = self.trouble_came()
        self.close()

    async def _transact(self) -> None:
        ongoing = self._begin(await self._live_session())
        await self._write(ongoing)
        await self._commit_offsets(ongoing)
        await self._write(ongoing)
        if self.end in (COMMIT, ABORT):
            await self._end(ongoing, commit=self.end == COMMIT)
            return
        if self.end == UNHEARD:
            await self._requests.end_unheard(ongoing, commit=True, patience_ms=1.5)
        if self.end == TIMED_OUT:
            await self.scene.sleep(2 * TIMEOUT_MS)
        self._session = None

    def _choose(self, partitions: list[PartitionBook]) -> list[PartitionBook]:
        return partitions

    def make_trouble(self) -> None:
        raise NotImplementedError

    def trouble_came(self) -> bool:
        raise NotImplementedError


class Doomed(Scripted):
    """The node dies in the middle of the n-th change on disk after the transaction began."""

    death = Death.KILL
    number = 0

    def make_trouble(self) -> None:
        self.world.machine.schedule_death(self.death, self.number)

    def trouble_came(self) -> bool:
        return self.scene.starts > 1


class Unheard(Scripted):
    """The n-th request or answer between the node's own parts is late or lost."""

    number = 0
    fate: float | None = LOST

    def make_trouble(self) -> None:
        conditions = self.world.machine.own_conditions
        conditions.fates = {conditions.passed + self.number: self.fate}

    def trouble_came(self) -> bool:
        conditions = self.world.machine.own_conditions
        return conditions.passed >= min(conditions.fates)


def at_every_step(kind: type[Scripted], protocol: int, end: str, *, durable: bool, **trouble: object) -> None:
    """Runs it with a fault at each step, until there are no more steps."""
    for number in range(1, MORE_THAN_ENOUGH):
        troubled, outcome = run(kind, protocol, end, durable=durable, number=number, **trouble)
        assert outcome.violation is None, f"step {number}: {summary(outcome)}"
        if not troubled:
            assert number > ENOUGH
            return
    pytest.fail("there is no end of it")


def run(kind: type[Scripted], protocol: int, end: str, *, durable: bool, **trouble: object) -> tuple[bool, RunReport]:
    actors: list[Scripted] = []

    def cast(world: World) -> list[SimClient]:
        actor = kind(world, protocol, end)
        for name, value in trouble.items():
            setattr(actor, name, value)
        actors.append(actor)
        return [actor]

    outcome = World(7, plan(durable=durable), cast=cast).run()
    return actors[0].troubled, outcome


@BOTH
@EVERY_WAY
def test_a_kill_at_any_change_on_disk(protocol: int, end: str) -> None:
    at_every_step(Doomed, protocol, end, durable=False)


@BOTH
def test_a_power_loss_at_any_change_on_disk(protocol: int) -> None:
    at_every_step(Doomed, protocol, COMMIT, durable=True, death=Death.REORDERING_POWER_LOSS)


@BOTH
@pytest.mark.parametrize("late_ms", [LOST, 20.0, 7_000.0])
def test_a_request_of_the_node_to_itself_or_its_answer_is_lost_or_late(protocol: int, late_ms: float | None) -> None:
    at_every_step(Unheard, protocol, COMMIT, durable=False, fate=late_ms)
