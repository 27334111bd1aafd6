"""One run: a node, its clients and its misfortunes, from one seed, on virtual time.

    create topics ─▶ clients at work, faults ─▶ no more faults: everybody brings work to its end ─▶ look at everything
                                                ─▶ clean stop, power loss, start ─▶ look at everything again

`World(seed).run()` returns an `Outcome`. A promise that does not hold ends the run; the outcome then says which one and
what led up to it. The node is never told that it is being simulated.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from quire.node.node import Node
from simulator.checker import Checker
from simulator.clients.administrator import Administrator
from simulator.clients.auditor import Auditor
from simulator.clients.classic_member import ClassicMember
from simulator.clients.client import Scene, SimClient
from simulator.clients.committer import Committer
from simulator.clients.consumer import Consumer
from simulator.clients.consumer_member import ConsumerMember
from simulator.clients.idempotent_producer import IdempotentProducer
from simulator.clients.mixed_member import MixedMember
from simulator.clients.own_consumer import OwnConsumer
from simulator.clients.own_producer import OwnProducer
from simulator.clients.own_transactional_producer import OwnTransactionalProducer
from simulator.clients.plain_producer import PlainProducer
from simulator.clients.reading import READ_COMMITTED
from simulator.clients.rest import Rest
from simulator.clients.seeker import Seeker
from simulator.clients.transactional_producer import TransactionalProducer
from simulator.clients.vandal import Vandal
from simulator.clock import SimClock
from simulator.disk import Crashed
from simulator.faults import Faults
from simulator.ledger import Counts, Ledger
from simulator.limits import applied
from simulator.machine import Death, Flushed, Machine, State
from simulator.network import SimNetwork
from simulator.node_log import NodeLog
from simulator.offset_ledger import OffsetLedger
from simulator.plan import CONSUMER_SESSION_TIMEOUT, GroupPlan, Plan, plan_of
from simulator.random import SimRandom
from simulator.tasks import Gate, Task
from simulator.trace import Trace
from simulator.violation import Violation

START_LIMIT_MS = 30_000.0
STOP_LIMIT_MS = 30_000.0
FINISH_LIMIT_MS = 120_000.0
GIVE_BACK_LIMIT_MS = 40_000.0
"""A write to a transaction waits half a minute for an answer of its coordinator that was lost."""
CALM_AFTER_MS = 5_000.0
"""How long after the last fault the last request that it hit may still go unanswered."""


@dataclass(slots=True)
class Outcome:
    seed: int
    digest: str
    events: int
    virtual_ms: float
    lives: int
    faults: dict[str, int]
    counts: Counts
    violation: str | None = None
    story: list[str] = field(default_factory=list)
    """What led up to the violation."""


Cast = Callable[["World"], list[SimClient]]


class World:
    def __init__(
        self,
        seed: int,
        plan: Plan | None = None,
        *,
        cast: Cast | None = None,
        echo: Callable[[str], None] | None = None,
    ) -> None:
        """`plan` is that of the seed unless another is given; `echo` is told every event.

        A `cast` takes the place of the plan's clients; the administrator then creates topics and nothing else.
        """
        self.seed = seed
        random = SimRandom(seed)
        self.plan = plan or plan_of(seed)
        self.clock = SimClock()
        self.trace = Trace(echo=echo)
        network = SimNetwork(self.clock, random.stream("network"), trace=self.trace)
        self.machine = Machine(self.clock, network, random, self.trace, self.plan.node_settings)
        ledger = Ledger()
        ledger.transactions.durable = self.plan.durable
        self.scene = Scene(
            clock=self.clock,
            network=network,
            random=random.stream("clients"),
            trace=self.trace,
            ledger=ledger,
            checker=Checker(ledger, self.machine.latest_ms),
            offsets=OffsetLedger(ledger),
            gate=Gate(is_open=True),
            life=self.machine.life,
            leaving_lives=self.machine.leaving_lives,
            misbehaviour=self.plan.misbehaviour,
        )
        self._log = NodeLog(self.scene.tell)
        self._administrator = Administrator(self.scene, "admin")
        self._clients = cast(self) if cast is not None else [self._administrator, *self._make_clients()]
        self._tasks: list[Task] = []
        self._auditor: Auditor | None = None
        self._audit: Task | None = None
        self._audits = 0
        self._rests = 0
        names = [client.name for client in self._clients]
        self._faults = Faults(self.scene, self.machine, random.stream("faults"), self.plan, names)
        self._random = random.stream("world")
        self.machine.on_start = self._starts
        self.machine.on_serving = self._serving
        self.machine.on_death = self._died
        self.machine.on_failure = self._failed

    def _make_clients(self) -> list[SimClient]:
        plan, scene = self.plan, self.scene
        return [
            *(PlainProducer(scene, f"plain-{number}", acks) for number, acks in enumerate(plan.plain_acks)),
            *(IdempotentProducer(scene, f"idempotent-{number}") for number in range(plan.idempotent_producers)),
            *(Consumer(scene, f"consumer-{number}", sessions=False) for number in range(plan.consumers)),
            *(Consumer(scene, f"follower-{number}", sessions=True) for number in range(plan.session_consumers)),
            *(
                Consumer(scene, f"committed-{number}", sessions=True, isolation_level=READ_COMMITTED)
                for number in range(plan.committed_consumers)
            ),
            *self._transactional_producers(),
            *self._own_clients(),
            *(Committer(scene, f"committer-{number}", group) for number, group in enumerate(plan.offset_groups)),
            *(member for group in plan.groups for member in self._members(group)),
            Seeker(scene, "seeker"),
            *([Vandal(scene, "vandal")] if plan.vandal else []),
        ]

    def _members(self, group: GroupPlan) -> list[SimClient]:
        dynamic = [f"{group.name}-dynamic-{number}" for number in range(group.dynamic)]
        static = [f"{group.name}-static-{number}" for number in range(group.static)]
        mixed = [f"{group.name}-classic-{number}" for number in range(group.mixed)]
        companions = dynamic + static + mixed
        if group.consumer_protocol:
            timeout_ms = int(self.plan.node_settings[CONSUMER_SESSION_TIMEOUT])
            instances = dict.fromkeys(dynamic) | {name: name for name in static}
            return [
                *(
                    ConsumerMember(self.scene, name, group.name, companions, timeout_ms, instance_id=instance_id)
                    for name, instance_id in instances.items()
                ),
                *(MixedMember(self.scene, name, group.name, companions) for name in mixed),
            ]
        members: list[SimClient] = [ClassicMember(self.scene, name, group.name, companions) for name in dynamic]
        members += [ClassicMember(self.scene, name, group.name, companions, instance_id=name) for name in static]
        if group.double:
            double = ClassicMember(self.scene, f"{static[0]}-double", group.name, companions, instance_id=static[0])
            members.append(double)
        return members

    def _own_clients(self) -> list[SimClient]:
        plan, scene = self.plan, self.scene
        groups = [*plan.offset_groups, *(group.name for group in plan.groups)]
        return [
            *(OwnProducer(scene, f"own-producer-{number}") for number in range(plan.own_producers)),
            *(
                OwnTransactionalProducer(
                    scene,
                    f"own-transactional-{number}{'abc'[rival]}",
                    f"own-id-{number}",
                    protocol,
                    groups,
                    abandons=each.abandons,
                )
                for number, each in enumerate(plan.own_transactional)
                for rival, protocol in enumerate(each.protocols)
            ),
            *(
                OwnConsumer(scene, f"own-consumer-{number}", read_committed=number % 2 == 0)
                for number in range(plan.own_consumers)
            ),
        ]

    def _transactional_producers(self) -> list[TransactionalProducer]:
        groups = [*self.plan.offset_groups, *(group.name for group in self.plan.groups)]
        return [
            TransactionalProducer(
                self.scene,
                f"transactional-{number}{'abc'[rival]}",
                f"id-{number}",
                protocol,
                groups,
                abandons=each.abandons,
            )
            for number, each in enumerate(self.plan.transactional)
            for rival, protocol in enumerate(each.protocols)
        ]

    # The run

    def run(self) -> Outcome:
        violation: Violation | None = None
        with self._log.attached(), applied(self.plan.limits):
            try:
                self._run()
            except Violation as error:
                violation = error
                self.scene.tell(f"broken: {error}")
        return Outcome(
            seed=self.seed,
            digest=self.trace.digest,
            events=self.trace.events,
            virtual_ms=self.clock.monotonic_ms(),
            lives=self.machine.life.number,
            faults=self._faults.struck,
            counts=self.scene.ledger.counts,
            violation=str(violation) if violation is not None else None,
            story=self.trace.story() if violation is not None else [],
        )

    def _run(self) -> None:
        self.clock.call_soon(self._start)
        self._run_until(self._is_well, START_LIMIT_MS, "the first start")
        self._create_topics()
        self._tasks = [Task(self.clock, client.name, client.run()) for client in self._clients]
        Task(self.clock, "faults", self._faults.run())
        self._run_for(self.plan.duration_ms)
        self._come_to_rest()
        self._await_rest()
        self._look_at_everything()
        self._check_nothing_is_left(self._serving_node())
        self._stop_and_start_again()
        self._await_rest()
        self._look_at_everything()

    def _create_topics(self) -> None:
        async def create() -> None:
            for topic in self.plan.topics:
                await self._administrator.create(
                    topic.name, topic.partitions, topic.settings, stays=True, transactional=topic.transactional
                )
            await self._administrator.set_up_coordinators(self.plan.coordinator_settings)
            if self._administrator not in self._clients:
                self._administrator.close()

        task = Task(self.clock, "create topics", create())
        self._run_until(lambda: task.ended, FINISH_LIMIT_MS, "creating topics")

    def _come_to_rest(self) -> None:
        """Ends the faults, and lets every client finish what it began."""
        self._faults.stop()
        self.scene.tell("no more faults")
        self._set_clock_right()
        self._run_until(self._is_nursed_well, START_LIMIT_MS + STOP_LIMIT_MS, "getting well after the last fault")
        self.scene.finishing = True
        self.clock.call_later(CALM_AFTER_MS, self._calm_down)
        self._run_until(lambda: all(task.ended for task in self._tasks), FINISH_LIMIT_MS, "finishing everybody's work")

    def _set_clock_right(self) -> None:
        """By a clock that has gone back, what was begun before would take for ever to time out."""
        self.scene.clock_changes += 1
        self.machine.jump_clock(self.machine.latest_ms() - self.clock.now_ms())

    def _await_rest(self) -> None:
        """Every transaction ends, though its producer may be gone, and all of it is there or nothing."""
        self._rests += 1
        task = Task(self.clock, "rest", Rest(self.scene, f"rest-{self._rests}").run())
        self._tasks.append(task)
        self._run_until(lambda: task.ended, FINISH_LIMIT_MS, "every transaction coming to an end")

    def _calm_down(self) -> None:
        self.scene.calm = True

    def _stop_and_start_again(self) -> None:
        """A clean stop has everything on disk and lets go of everything; the power may go at once."""
        self.scene.tell("a clean stop, then a power loss, then a start")
        disk = self.machine.disk
        self.machine.stop()
        self._run_until(lambda: self.machine.state is State.DOWN, STOP_LIMIT_MS, "a clean stop")
        if disk.open_paths():
            raise Violation("a stopped node lets go of its files", f"{disk.open_paths()} are open")
        for book in self.scene.ledger.live_partitions():
            book.flushed = book.end_offset
        self.machine.die(Death.POWER_LOSS)
        self._run_until(self._is_well, START_LIMIT_MS, "the last start")

    def _look_at_everything(self) -> None:
        self._run_until(lambda: self._audit is None, FINISH_LIMIT_MS, "reading everything")
        self._start_audit(after_power_loss=False, alone=True)
        self._run_until(lambda: self._audit is None, FINISH_LIMIT_MS, "reading everything once more")

    def _check_nothing_is_left(self, node: Node) -> None:
        """Nobody is connected any more, so nothing may be kept for anybody."""

        def nothing_is_left() -> bool:
            counters = node.server.counters
            waits = [(each.fetch_waits, each.commit_waits, each.flush_waits) for each in node.partitions]
            waiting = sum(len(queue) for queues in waits for queue in queues)
            held = node.server.pool.in_use_bytes + node.server.pool.held
            return counters.connections == counters.queued_bytes == waiting == held == 0

        self._run_until(nothing_is_left, GIVE_BACK_LIMIT_MS, "giving back what requests held")

    # Stepping

    def _run_for(self, duration_ms: float) -> None:
        end_ms = self.clock.monotonic_ms() + duration_ms
        while self.clock.monotonic_ms() < end_ms:
            self._step()

    def _run_until(self, condition: Callable[[], bool], limit_ms: float, what: str) -> None:
        end_ms = self.clock.monotonic_ms() + limit_ms
        while not condition():
            if self.clock.monotonic_ms() > end_ms:
                waiting = [repr(task) for task in self._tasks if not task.ended]
                raise Violation("the node never hangs", f"{what} took more than {limit_ms:.0f} ms; {waiting} go on")
            self._step()

    def _step(self) -> None:
        try:
            self.clock.step()
        except Crashed as crash:
            self.machine.doom_has_come(crash)
        except Violation:
            raise
        except Exception as error:
            self.scene.tell(traceback.format_exc())
            raise Violation("no callback raises", f"{type(error).__name__}: {error}") from error
        if self._log.unexpected is not None:
            raise Violation("no request fails unexpectedly", self._log.unexpected)
        starting = self.machine.state is State.STARTING and not self.scene.disk_trouble
        if starting and self.clock.monotonic_ms() - self.machine.started_at_ms > START_LIMIT_MS:
            raise Violation("the node never hangs", f"it has not started within {START_LIMIT_MS:.0f} ms")

    def _is_well(self) -> bool:
        return self.machine.state is State.SERVING and self.scene.gate.is_open and not self.machine.has_failed_directory

    def _is_nursed_well(self) -> bool:
        """Somebody replaces the disk that has failed and starts the node again."""
        if self.machine.state is State.SERVING and self.machine.has_failed_directory:
            self.machine.die(Death.KILL)
        return self._is_well()

    def _serving_node(self) -> Node:
        assert self.machine.node is not None
        return self.machine.node

    # What the machine reports

    def _starts(self) -> None:
        self.scene.life = self.machine.life
        self._faults.at_start()
        if self.machine.disk.calls.has_faults or self.machine.disk.capacity_bytes is not None:
            self.scene.troubled_lives.append(self.machine.life.number)
        if self.machine.has_slow_disk:
            self.scene.slow_lives.append(self.machine.life.number)

    def _serving(self) -> None:
        self.scene.tell(f"the node serves, life {self.machine.life.number}")
        if not self.scene.gate.is_open:
            self._start_audit(after_power_loss=True)
        elif self._random.chance(0.5):
            self._start_audit(after_power_loss=False)

    def _died(self, death: Death, flushed: Flushed) -> None:
        self.scene.tell(f"the node is {death.value}")
        if self._audit is not None and self._auditor is not None:
            self._audit.end()
            self._audit = None
            self._auditor.close()
        ledger = self.scene.ledger
        ledger.flushed(flushed)
        if death.loses_power:
            ledger.power_lost()
            if not self.plan.durable:
                self.scene.offsets.power_lost()
            self.scene.gate.close()
        self.scene.life = self.machine.life
        self.clock.call_later(self._faults.restart_delay_ms(), self._start)

    def _start(self) -> None:
        if self.machine.state is State.DOWN:
            self.machine.start()

    def _failed(self, reason: str) -> None:
        """The node says that it cannot go on: whoever runs it ends the process."""
        if not self.scene.disk_trouble:
            raise Violation("a node goes on", f"it gave up without a disk error: {reason}")
        self.scene.tell(f"the node gave up: {reason}")
        life = self.machine.life

        def end() -> None:
            if self.machine.life == life and self.machine.state is not State.DOWN:
                self.machine.die(Death.KILL)

        self.clock.call_soon(end)

    def _start_audit(self, *, after_power_loss: bool, alone: bool = False) -> None:
        self._audits += 1
        self._auditor = auditor = Auditor(
            self.scene, f"auditor-{self._audits}", after_power_loss=after_power_loss, alone=alone
        )

        async def audit() -> None:
            await auditor.run()
            self._audit = None
            if after_power_loss:
                self.scene.gate.open()

        self._audit = Task(self.clock, auditor.name, audit())
