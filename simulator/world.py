"""One run: a cluster of one or more nodes, its clients and faults, from one seed, on virtual time.

    create topics ─▶ clients work, faults happen ─▶ no more faults: clients finish their work ─▶ check everything
                                                 ─▶ clean stop, power loss, start ─▶ check everything again

`World(seed).run()` returns a `RunReport`. A promise that does not hold ends the run; the report then says which one and
what led up to it. The nodes do not know that they are simulated.

    stepper         the next event, and what must hold after each
    node_lives      starts the nodes, and again after each end
    final_checks    what must hold when nothing happens any more
"""

from collections.abc import Callable

from simulator.audits import Audits
from simulator.cast import clients_of
from simulator.checks.checker import Checker
from simulator.clients.administrator import Administrator
from simulator.clients.client import Scene, SimClient
from simulator.clock import SimClock
from simulator.cluster_settings import dynamic_settings_of, first_voters, settings_of
from simulator.faults import Faults
from simulator.final_checks import FinalChecks
from simulator.garbage import rare_collections
from simulator.hosts import node_names
from simulator.ledger import Ledger
from simulator.limits import applied
from simulator.machine import Death, Machine
from simulator.network import SimNetwork
from simulator.node_lives import NodeLives
from simulator.node_log import NodeLog
from simulator.offset_ledger import OffsetLedger
from simulator.plan import Plan, plan_of
from simulator.random import SimRandom
from simulator.report import RunReport
from simulator.stepper import Stepper
from simulator.tasks import Gate, Task
from simulator.time_limits import (
    FINISH_LIMIT_MS,
    PAUSE_LIMIT_MS,
    REPLICATION_LIMIT_MS,
    START_LIMIT_MS,
    STOP_LIMIT_MS,
)
from simulator.trace import Trace
from simulator.violation import Violation
from simulator.white_box.disk_mover import DiskMover
from simulator.white_box.scribe import SETTINGS, Scribe
from simulator.white_box.voter_operator import VoterOperator
from simulator.white_box.white_box import WhiteBox

ATTACK_LIMIT_MS = 300_000.0
"""How long to wait at most until a seed has gone through enough."""
STRETCH_MS = 1_000.0
CALM_AFTER_MS = 5_000.0
"""How long after the last fault a request that it affected may remain unanswered."""
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


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
        """`plan` replaces that of the seed; `echo` is called with every event.

        `cast` replaces the plan's clients; the administrator then only creates topics.
        """
        self.seed = seed
        random = SimRandom(seed)
        self.plan = plan or plan_of(seed)
        self.clock = SimClock()
        self.trace = Trace(echo=echo)
        network = SimNetwork(self.clock, random.stream("network"), trace=self.trace)
        names = node_names(self.plan.nodes)
        self.machines = [self._machine(number, names, network, random) for number in range(len(names))]
        brokers = [machine.name for machine in self.machines if machine.is_broker and not self.plan.scribes]
        ledger = Ledger()
        ledger.transactions.durable = self.plan.durable
        self.scene = Scene(
            clock=self.clock,
            network=network,
            random=random.stream("clients"),
            trace=self.trace,
            ledger=ledger,
            checker=Checker(ledger, self.latest_ms),
            offsets=OffsetLedger(ledger),
            nodes=brokers,
            gates={name: Gate(is_open=True) for name in brokers},
            lives={machine.name: machine.life for machine in self.machines},
            misbehaviour=self.plan.misbehaviour,
            most_replicas=self.plan.most_replicas,
            pace=self.plan.pace,
        )
        self._log = NodeLog(self.scene.tell, lambda: self.trace.speaker)
        self._administrator = Administrator(self.scene, "admin")
        self._scribes: list[Scribe] = []
        self._operator: VoterOperator | None = None
        self._clients = cast(self) if cast is not None else self._planned_clients()
        self._attacked_ms = 0.0
        self._lacks: str | None = None
        audits = Audits(self.scene)
        clients = [client.name for client in self._clients]
        self._faults = Faults(self.scene, self.machines, random.stream("faults"), self.plan, clients)
        self._lives = NodeLives(
            self.scene,
            self.machines,
            self._faults,
            audits,
            random.stream("world"),
            durable=self.plan.durable,
            ended_in_cluster=lambda machine, death, flushed: self._white_box.ended(machine, death, flushed),
        )
        self._white_box = WhiteBox(
            self.machines,
            ledger,
            self.scene.checker,
            state_lost=self._lives.coordinator_state_lost,
            coordinator_moved=self._lives.coordinator_moved,
        )
        if self.plan.moves_disks and cast is None:
            self._clients.append(DiskMover(self.scene, self.machines, self._white_box.happenings))
        self.stepper = Stepper(self.scene, self.machines, self._log, self._white_box)
        self._final_checks = FinalChecks(
            self.scene, self.machines, self.stepper, self._white_box, audits, self._scribes, self._operator
        )

    def _machine(self, number: int, names: list[str], network: SimNetwork, random: SimRandom) -> Machine:
        name, settings = names[number], self.plan.node_settings
        if self.plan.roles:
            random = random.stream(name)
            settings = settings | self._cluster_settings(names, number)
        return Machine(name, self.clock, network, random, self.trace, settings)

    def _cluster_settings(self, names: list[str], number: int) -> dict[str, str]:
        plan = self.plan
        if plan.first_voters:
            return dynamic_settings_of(names, plan.roles, number, auto_join=plan.auto_join)
        return settings_of(names, plan.roles, number)

    def _format(self) -> None:
        plan, names = self.plan, [machine.name for machine in self.machines]
        voters = None
        if plan.first_voters:
            voters = first_voters(names, plan.roles, plan.first_voters, SimRandom(self.seed).stream("first voters"))
        for machine in self.machines:
            machine.format(CLUSTER_ID, voters)

    def _planned_clients(self) -> list[SimClient]:
        clients: list[SimClient] = []
        if self.plan.changes_voters:
            self._operator = VoterOperator(self.scene, self.machines, auto_join=self.plan.auto_join)
            clients.append(self._operator)
        if not self.plan.scribes:
            return [self._administrator, *clients_of(self.plan, self.scene), *clients]
        self._scribes = [Scribe(self.scene, f"scribe of {each}", self.machines, each) for each in SETTINGS]
        return [*self._scribes, *clients]

    @property
    def machine(self) -> Machine:
        """The first one."""
        return self.machines[0]

    def latest_ms(self) -> int:
        """The latest time that a node's clock has shown."""
        return max(machine.latest_ms() for machine in self.machines)

    # --- The run

    def run(self) -> RunReport:
        violation: Violation | None = None
        with self._log.attached(), applied(self.plan.limits), rare_collections():
            try:
                self._run()
            except Violation as error:
                violation = error
                self.scene.tell(f"broken: {error}")
        return RunReport(
            seed=self.seed,
            digest=self.trace.digest,
            events=self.trace.events,
            virtual_ms=self.clock.monotonic_ms(),
            lives=self.scene.starts,
            faults=self._faults.counts.struck,
            counts=self.scene.ledger.counts,
            announced=sum(self._faults.counts.announced.values()),
            attacked_ms=self._attacked_ms,
            lacks=self._lacks if violation is None else None,
            happened=self._white_box.happenings.counts,
            violation=str(violation) if violation is not None else None,
            story=self.trace.story() if violation is not None else [],
        )

    def start(self) -> None:
        """Formats the nodes of a cluster, and starts all of them with the next events."""
        if self.plan.roles:
            self._format()
        for machine in self.machines:
            self._lives.start_soon(machine)

    def _run(self) -> None:
        self.start()
        self.stepper.run_until(self._lives.all_serve, START_LIMIT_MS, "the first start")
        if self.scene.nodes:
            self._create_topics()
        self.stepper.tasks += [Task(self.clock, client.name, client.run()) for client in self._clients]
        Task(self.clock, "faults", self._faults.run())
        self._attack()
        self._faults.begin_no_more()
        self.stepper.run_until(lambda: not self._faults.paused, PAUSE_LIMIT_MS, "the end of a pause")
        self._finish_work()
        self._final_checks.run()
        self._final_checks.check_nothing_is_left()
        self._stop_and_start_again()
        self._final_checks.run()

    def _attack(self) -> None:
        """Clients work and faults happen, for as long as the plan says, or until there were enough of both."""
        started_ms = self.clock.monotonic_ms()
        end_ms, last_ms = started_ms + self.plan.duration_ms, started_ms + ATTACK_LIMIT_MS
        while (now_ms := self.clock.monotonic_ms()) < end_ms or (self._lacks and now_ms < last_ms):
            next_ms = now_ms + STRETCH_MS
            self.stepper.run_to(min(next_ms, end_ms) if now_ms < end_ms else next_ms)
            self._attacked_ms = self.clock.monotonic_ms() - started_ms
            self._adjust_pace()

    def _adjust_pace(self) -> None:
        least = self.plan.least
        if least is not None:
            seconds, writes = self._attacked_ms / 1000, self.scene.ledger.counts.writes_acknowledged
            faults = self._faults.counts.total
            self._lacks = least.lacks(seconds, writes, faults)
            self.scene.pace = self.plan.pace * least.pace(seconds, writes)
            self.scene.needs_lull = least.needs_lull(seconds, writes, faults)

    def _create_topics(self) -> None:
        async def create() -> None:
            for topic in self.plan.topics:
                await self._administrator.create(
                    topic.name,
                    topic.partitions,
                    topic.settings,
                    stays=True,
                    transactional=topic.transactional,
                    replication_factor=topic.replication_factor,
                )
            await self._administrator.set_up_coordinators(self.plan.coordinator_settings)
            if self._administrator not in self._clients:
                self._administrator.close()

        task = Task(self.clock, "create topics", create())
        self.stepper.run_until(lambda: task.ended, FINISH_LIMIT_MS, "creating topics")

    def _finish_work(self) -> None:
        """Ends the faults, and lets every client finish what it began."""
        self._faults.stop()
        self.scene.tell("no more faults")
        self._correct_clocks()
        limit_ms = START_LIMIT_MS + STOP_LIMIT_MS
        self.stepper.run_until(self._lives.all_serve_after_repair, limit_ms, "recovery after the last fault")
        self._restore_replication()
        self.scene.finish()
        self.clock.call_later(CALM_AFTER_MS, self._calm_down)
        tasks = self.stepper.tasks
        self.stepper.run_until(lambda: all(task.ended for task in tasks), FINISH_LIMIT_MS, "the clients' last work")

    def _restore_replication(self) -> None:
        end_ms = self.clock.monotonic_ms() + REPLICATION_LIMIT_MS
        while not self._white_box.is_fully_replicated and self.clock.monotonic_ms() < end_ms:
            self.stepper.step()
        self._white_box.check_fully_replicated()

    def _correct_clocks(self) -> None:
        """If a clock had gone back, earlier operations would take very long to time out."""
        self.scene.clock_changed()
        ahead_ms = self.latest_ms() - self.clock.now_ms()
        for machine in self.machines:
            machine.jump_clock(ahead_ms)

    def _calm_down(self) -> None:
        self.scene.calm = True

    def _stop_and_start_again(self) -> None:
        """After a clean stop everything is on disk and all files are closed, so a power loss must not matter."""
        self.scene.tell("a clean stop, then a power loss, then a start")
        disks = [(machine.name, machine.disk) for machine in self.machines]
        self._lives.stay_down = True
        for machine in self.machines:
            machine.stop()
        self.stepper.run_until(self._lives.all_down, STOP_LIMIT_MS, "a clean stop")
        for name, disk in disks:
            if disk.open_paths():
                raise Violation("a stopped node closes its files", f"{disk.open_paths()} of {name} are open")
        for book in self.scene.ledger.live_partitions():
            book.flushed = book.end_offset
        self._lives.stay_down = False
        self.scene.calm = self.scene.alone  # the first of several nodes that serves may have to wait for the others
        for machine in self.machines:
            machine.die(Death.POWER_LOSS)
        self.stepper.run_until(self._lives.all_serve, START_LIMIT_MS, "the last start")
        self._restore_replication()
        self.scene.calm = True
