"""One run: a cluster of one or more nodes, its clients and faults, from one seed, on virtual time.

    create topics ─▶ clients work, faults happen ─▶ no more faults: clients finish their work ─▶ check everything
                                                 ─▶ clean stop, power loss, start ─▶ check everything again

`World(seed).run()` returns a `RunReport`. A promise that does not hold ends the run; the report then says which one and
what led up to it. The nodes do not know that they are simulated.
"""

import traceback
from collections.abc import Callable

from simulator.audits import Audits
from simulator.cast import clients_of
from simulator.checks.checker import Checker
from simulator.clients.administrator import Administrator
from simulator.clients.client import Scene, SimClient
from simulator.clients.rest import Rest
from simulator.clock import SimClock
from simulator.cluster_settings import dynamic_settings_of, first_voters, settings_of
from simulator.disk import Crashed
from simulator.faults import Faults
from simulator.garbage import rare_collections
from simulator.hosts import node_names
from simulator.ledger import Ledger
from simulator.limits import applied
from simulator.machine import Death, Flushed, Machine, MachineState
from simulator.network import SimNetwork
from simulator.node_log import NodeLog
from simulator.offset_ledger import OffsetLedger
from simulator.plan import Plan, plan_of
from simulator.random import SimRandom
from simulator.report import RunReport
from simulator.tasks import Gate, Task
from simulator.trace import Trace
from simulator.violation import Violation
from simulator.white_box.scribe import SETTINGS, Scribe
from simulator.white_box.voter_operator import VoterOperator
from simulator.white_box.white_box import WhiteBox

ATTACK_LIMIT_MS = 300_000.0
"""How long to wait at most until a seed has gone through enough."""
STRETCH_MS = 1_000.0
POLL_MS = 20.0
START_LIMIT_MS = 30_000.0
STOP_LIMIT_MS = 30_000.0
FINISH_LIMIT_MS = 120_000.0
PAUSE_LIMIT_MS = 60_000.0
WHOLE_LIMIT_MS = 60_000.0
GIVE_BACK_LIMIT_MS = 40_000.0
"""A write in a transaction waits half a minute if the coordinator's answer is lost."""
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
CALM_AFTER_MS = 5_000.0
"""How long after the last fault a request that it affected may remain unanswered."""


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
        for machine in self.machines:
            machine.leaving_lives = self.scene.leaving_lives
        self._log = NodeLog(self.scene.tell, lambda: self.trace.speaker)
        self._administrator = Administrator(self.scene, "admin")
        self._scribes: list[Scribe] = []
        self._operator: VoterOperator | None = None
        self._clients = cast(self) if cast is not None else self._planned_clients()
        self._tasks: list[Task] = []
        self._audits = Audits(self.scene)
        self._rests = 0
        self._attacked_ms = 0.0
        self._lacks: str | None = None
        self._stays_down = False
        """Whether a node that has ended is not started again."""
        clients = [client.name for client in self._clients]
        self._faults = Faults(self.scene, self.machines, random.stream("faults"), self.plan, clients)
        self._white_box = WhiteBox(
            self.machines,
            ledger,
            self.scene.checker,
            state_lost=self._coordinators_lose,
            coordinator_moved=self._coordinator_moved,
        )
        self._random = random.stream("world")

    def _machine(self, number: int, names: list[str], network: SimNetwork, random: SimRandom) -> Machine:
        name, settings = names[number], self.plan.node_settings
        if self.plan.roles:
            random = random.stream(name)
            settings = settings | self._cluster_settings(names, number)
        machine = Machine(name, self.clock, network, random, self.trace, settings)
        machine.on_start = self._starts
        machine.on_serving = self._serving
        machine.on_death = self._died
        machine.on_failure = self._failed
        return machine

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

    def _run(self) -> None:
        if self.plan.roles:
            self._format()
        for machine in self.machines:
            self._start_soon(machine)
        self._run_until(self._is_well, START_LIMIT_MS, "the first start")
        if self.scene.nodes:
            self._create_topics()
        self._tasks = [Task(self.clock, client.name, client.run()) for client in self._clients]
        Task(self.clock, "faults", self._faults.run())
        self._attack()
        self._faults.begin_no_more()
        self._run_until(lambda: not self._faults.paused, PAUSE_LIMIT_MS, "the end of a pause")
        self._come_to_rest()
        self._check_all()
        if self.scene.nodes:
            for machine in self.machines:
                self._check_nothing_is_left(machine)
        self._stop_and_start_again()
        self._check_all()

    def _attack(self) -> None:
        """Clients work and faults happen, for as long as the plan says, or until there were enough of both."""
        started_ms = self.clock.monotonic_ms()
        end_ms, last_ms = started_ms + self.plan.duration_ms, started_ms + ATTACK_LIMIT_MS
        while (now_ms := self.clock.monotonic_ms()) < end_ms or (self._lacks and now_ms < last_ms):
            next_ms = now_ms + STRETCH_MS
            self._run_to(min(next_ms, end_ms) if now_ms < end_ms else next_ms)
            self._attacked_ms = self.clock.monotonic_ms() - started_ms
            self._compare_with_what_is_needed()

    def _compare_with_what_is_needed(self) -> None:
        least = self.plan.least
        if least is not None:
            seconds, writes = self._attacked_ms / 1000, self.scene.ledger.counts.writes_acknowledged
            faults = self._faults.counts.total
            self._lacks = least.lacks(seconds, writes, faults)
            self.scene.pace = self.plan.pace * least.pace(seconds, writes)
            self.scene.needs_lull = least.needs_lull(seconds, writes, faults)

    def _check_all(self) -> None:
        self._check_that_all_agree()
        self.scene.at_rest = True
        if self.scene.nodes:
            self._await_rest()
            self._look_at_everything()
            for book in self.scene.ledger.live_partitions():
                self.scene.checker.losses.check_tentative(book)
            self._check_equal_replicas()
        self.scene.at_rest = False

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
        self._run_until(lambda: task.ended, FINISH_LIMIT_MS, "creating topics")

    def _come_to_rest(self) -> None:
        """Ends the faults, and lets every client finish what it began."""
        self._faults.stop()
        self.scene.tell("no more faults")
        self._set_clocks_right()
        self._run_until(self._is_nursed_well, START_LIMIT_MS + STOP_LIMIT_MS, "recovery after the last fault")
        self._become_whole()
        self.scene.finish()
        self.clock.call_later(CALM_AFTER_MS, self._calm_down)
        self._run_until(lambda: all(task.ended for task in self._tasks), FINISH_LIMIT_MS, "the clients' last work")

    def _become_whole(self) -> None:
        end_ms = self.clock.monotonic_ms() + WHOLE_LIMIT_MS
        while not self._white_box.is_whole and self.clock.monotonic_ms() < end_ms:
            self._step()
        self._white_box.check_whole()

    def _check_equal_replicas(self) -> None:
        """Followers learn a little later how much is committed."""
        equal, end_ms = self._white_box.equal, self.clock.monotonic_ms() + WHOLE_LIMIT_MS
        while not equal.end_alike and self.clock.monotonic_ms() < end_ms:
            self._run_for(POLL_MS)
        equal.check()

    def _set_clocks_right(self) -> None:
        """If a clock had gone back, earlier operations would take very long to time out."""
        self.scene.clock_changed()
        ahead_ms = self.latest_ms() - self.clock.now_ms()
        for machine in self.machines:
            machine.jump_clock(ahead_ms)

    def _await_rest(self) -> None:
        """Waits until every transaction has ended, even without its producer; checks that all or none is there."""
        self._rests += 1
        task = Task(self.clock, "rest", Rest(self.scene, f"rest-{self._rests}").run())
        self._tasks.append(task)
        self._run_until(lambda: task.ended, FINISH_LIMIT_MS, "the end of every transaction")

    def _calm_down(self) -> None:
        self.scene.calm = True

    def _stop_and_start_again(self) -> None:
        """After a clean stop everything is on disk and all files are closed, so a power loss must not matter."""
        self.scene.tell("a clean stop, then a power loss, then a start")
        disks = [(machine.name, machine.disk) for machine in self.machines]
        self._stays_down = True
        for machine in self.machines:
            machine.stop()
        self._run_until(self._is_down, STOP_LIMIT_MS, "a clean stop")
        for name, disk in disks:
            if disk.open_paths():
                raise Violation("a stopped node closes its files", f"{disk.open_paths()} of {name} are open")
        for book in self.scene.ledger.live_partitions():
            book.flushed = book.end_offset
        self._stays_down = False
        self.scene.calm = self.scene.alone  # the first of several nodes that serves may have to wait for the others
        for machine in self.machines:
            machine.die(Death.POWER_LOSS)
        self._run_until(self._is_well, START_LIMIT_MS, "the last start")
        self._become_whole()
        self.scene.calm = True

    def _is_down(self) -> bool:
        return all(machine.state is MachineState.DOWN for machine in self.machines)

    def _look_at_everything(self) -> None:
        self._run_until(lambda: not self._audits.running, FINISH_LIMIT_MS, "reading everything")
        self._audits.start(self.scene.nodes, after_power_loss=False, alone=True)
        self._run_until(lambda: not self._audits.running, FINISH_LIMIT_MS, "reading everything once more")

    def _check_nothing_is_left(self, machine: Machine) -> None:
        """No client is connected, so the node must not hold anything for one; other nodes stay connected."""
        node, nodes = machine.node, {each.name for each in self.machines}
        assert node is not None

        def nothing_is_left() -> bool:
            counters = node.server.counters
            leaders = [each.leader for each in node.partitions if each.leader is not None]
            waits = [(each.partition.waiting_fetches, each.commit_waits, each.flush_waits) for each in leaders]
            waiting = sum(len(queue) for queues in waits for queue in queues)
            if not self.scene.alone:
                return waiting == 0 and self.scene.network.peers(machine.name) <= nodes
            held = node.server.pool.in_use_bytes + node.server.pool.held
            return counters.connections == counters.queued_bytes == waiting == held == 0

        self._run_until(nothing_is_left, GIVE_BACK_LIMIT_MS, "the release of what requests held")

    def _check_that_all_agree(self) -> None:
        """Changes have ended, so every node gets the same metadata."""
        self._run_until(lambda: self._white_box.agree, FINISH_LIMIT_MS, "the same metadata on every node")
        self._white_box.look_at_the_end(self.clock.monotonic_ms())
        for scribe in self._scribes:
            scribe.check_kept()
        if self._operator is not None:
            self._operator.check_kept()

    # --- Stepping

    def _run_for(self, duration_ms: float) -> None:
        self._run_to(self.clock.monotonic_ms() + duration_ms)

    def _run_to(self, end_ms: float) -> None:
        while self.clock.monotonic_ms() < end_ms:
            self._step()

    def _run_until(self, condition: Callable[[], bool], limit_ms: float, what: str) -> None:
        end_ms = self.clock.monotonic_ms() + limit_ms
        while not condition():
            if self.clock.monotonic_ms() > end_ms:
                waiting = [repr(task) for task in self._tasks if not task.ended]
                raise Violation("the node never hangs", f"{what} took more than {limit_ms:.0f} ms; {waiting} still run")
            self._step()

    def _step(self) -> None:
        try:
            self.clock.step()
        except Crashed as crash:
            self._machine_of(crash).doom_has_come(crash)
        except Violation:
            raise
        except Exception as error:
            self.scene.tell(traceback.format_exc())
            raise Violation("no callback raises", f"{type(error).__name__}: {error}") from error
        if self._log.unexpected is not None:
            raise Violation("no request fails unexpectedly", self._log.unexpected)
        if self.scene.alone:
            self._check_that_it_starts(self.machine)
        self._white_box.follow(self.clock.monotonic_ms())

    def _machine_of(self, crash: Crashed) -> Machine:
        return next(machine for machine in self.machines if machine.disk.calls.name == crash.disk)

    def _check_that_it_starts(self, machine: Machine) -> None:
        """A node on its own must start whatever happens; one of several may have to wait for the others."""
        if machine.state is not MachineState.STARTING:
            return
        late = self.clock.monotonic_ms() - machine.started_at_ms > START_LIMIT_MS
        if late and not self._has_trouble(machine):
            raise Violation("the node never hangs", f"it has not started within {START_LIMIT_MS:.0f} ms")

    def _has_trouble(self, machine: Machine) -> bool:
        return machine.life in self.scene.troubled_lives

    def _is_well(self) -> bool:
        return all(
            machine.state is MachineState.SERVING
            and (machine.name not in self.scene.gates or self.scene.gates[machine.name].is_open)
            and not machine.has_failed_directory
            for machine in self.machines
        )

    def _is_nursed_well(self) -> bool:
        """As `_is_well`; restarts a node with a failed directory, as an operator would who replaced the disk."""
        if not all(machine.state is MachineState.SERVING for machine in self.machines):
            return False
        for machine in self.machines:
            if machine.has_failed_directory:
                machine.die(Death.KILL)
        return self._is_well()

    # --- What the machines report

    def _starts(self, machine: Machine) -> None:
        self.scene.lives[machine.name] = machine.life
        self._faults.at_start(machine)
        if machine.disk.calls.has_faults or machine.disk.capacity_bytes is not None:
            self.scene.troubled_lives.append(machine.life)
        if machine.has_slow_disk:
            self.scene.slow_lives.append(machine.life)

    def _serving(self, machine: Machine) -> None:
        self.scene.tell(f"{self._called(machine)} serves, life {machine.life.number}")
        if machine.name not in self.scene.gates:
            return
        if not self.scene.gates[machine.name].is_open:
            self._audits.start([machine.name], after_power_loss=True)
        elif self._random.chance(0.5):
            self._audits.start([machine.name], after_power_loss=False)

    def _died(self, machine: Machine, death: Death, flushed: Flushed) -> None:
        self.scene.tell(f"{self._called(machine)} ends: {death.value}")
        self._audits.end(machine.name)
        if self.scene.alone:
            self._loses_alone(machine, death, flushed)
        else:
            self._white_box.ended(machine, death, flushed)
        self.clock.call_later(self._faults.restart_delay_ms(), lambda: self._start(machine))

    def _loses_alone(self, machine: Machine, death: Death, flushed: Flushed) -> None:
        ledger = self.scene.ledger
        ledger.flushed(flushed)
        if death.loses_power:
            ledger.power_lost(machine.name)
            self._coordinators_lose()
            if machine.name in self.scene.gates:
                self.scene.gates[machine.name].close()

    def _coordinators_lose(self) -> None:
        """The end of a log that coordinators or transactions need may be lost, unless it was flushed."""
        if not self.plan.durable:
            self.scene.ledger.transactions.power_lost()
            self.scene.offsets.power_lost()

    def _coordinator_moved(self) -> None:
        """The clock of the new coordinator may say that a transaction began long ago: then it times out."""
        if len({machine.ahead_ms for machine in self.machines}) > 1:
            self.scene.clock_changed()

    def _called(self, machine: Machine) -> str:
        return "the node" if self.scene.alone else machine.name

    def _start_soon(self, machine: Machine) -> None:
        self.clock.call_soon(lambda: self._start(machine))

    def _start(self, machine: Machine) -> None:
        if machine.state is MachineState.DOWN and not self._stays_down:
            machine.start()

    def _failed(self, machine: Machine, reason: str) -> None:
        """The node reports that it cannot continue; its operator ends the process."""
        if not self._has_trouble(machine):
            raise Violation("a node continues", f"{self._called(machine)} gave up without a disk error: {reason}")
        self.scene.tell(f"{self._called(machine)} gave up: {reason}")
        life = machine.life

        def end() -> None:
            if machine.life == life and machine.state is not MachineState.DOWN:
                machine.die(Death.KILL)

        self.clock.call_soon(end)
