"""A machine that a node runs on, and the ways in which the node can end there.

    start ──▶ starting ──▶ serving ──▶ stopping ──▶ down       the node's own way
                 └────────────┴────────────┴──────▶ down       kill: the page cache survives
                                                               power loss: only what was synced does, and perhaps more

Each start is a new life: a new process with a clock and jobs, a new network host, the same disk. A death can also be
scheduled for the n-th next change on disk, so that it happens in the middle of an operation.
"""

from collections.abc import Callable
from enum import Enum

from quire.config.broker_config import BrokerConfig
from quire.controller.format import format_node
from quire.node.node import Node
from quire.raft.errors import MetadataLogError
from quire.raft.replicas import VoterSet
from quire.storage.errors import DataDirectoryError
from simulator.clock import HostClock, SimClock
from simulator.cluster_settings import BOTH, BROKER, CONTROLLER
from simulator.disk import Crashed, SimDisk
from simulator.fault_counts import Felt, unnoticed
from simulator.hosts import ALONE, NODE_PORT
from simulator.jobs import USUAL_JOB_MS, SimJobs
from simulator.ledger import TopicPartition
from simulator.life import Life
from simulator.network import SimNetwork
from simulator.own_requests import OwnConditions, Unreliable, UnreliableChannel, UnreliableStateLog
from simulator.process import Process
from simulator.random import SimRandom
from simulator.trace import Trace

Flushed = list[tuple[TopicPartition, int]]


class MachineState(Enum):
    DOWN = "down"
    STARTING = "starting"
    SERVING = "serving"
    STOPPING = "stopping"


class Death(Enum):
    KILL = "kill"
    POWER_LOSS = "power loss"
    REORDERING_POWER_LOSS = "power loss with reordered writes"

    @property
    def loses_power(self) -> bool:
        return self is not Death.KILL


class Machine:
    def __init__(
        self,
        name: str,
        clock: SimClock,
        network: SimNetwork,
        random: SimRandom,
        trace: Trace,
        settings: dict[str, str],
    ) -> None:
        """`settings` are complete in a cluster, and those that differ from a standalone node's otherwise."""
        self.name = name
        self._roles = settings.get("process.roles", BOTH)
        disk_name = "disk" if name == ALONE else f"{name}'s disk"
        self.disk = SimDisk(random.stream("disk"), cold_chance=0.05, now_ms=clock.now_ms, trace=trace, name=disk_name)
        self.state = MachineState.DOWN
        self.life = Life(name, 0)
        self.power_losses = 0
        self.node: Node | None = None
        self.skew_ms = 0
        self.rate = 1.0
        self._ahead_ms = 0
        self.longest_job_ms = USUAL_JOB_MS
        self._slow_job: Felt = unnoticed
        self.own_conditions = OwnConditions()
        """How reliable the node's requests to its own parts are."""
        self.sync_failed = False
        """A sync failed, so the page cache has data that will never be on disk: this life ends with a power loss."""
        self._had_failed_directory = False
        self.last_log_ends: dict[TopicPartition, int] = {}
        """Where the logs ended when the last process did: a kill loses nothing of them.

        Empty if a disk had failed, or if the process was still starting.
        """
        self.leaving_lives: list[Life] = []
        self.started_at_ms = 0.0
        """When it started, or continued after a pause."""
        self.on_start: Callable[[Machine], None] = lambda _: None
        self.on_serving: Callable[[Machine], None] = lambda _: None
        self.on_death: Callable[[Machine, Death, Flushed], None] = lambda _machine, _death, _flushed: None
        self.on_failure: Callable[[Machine, str], None] = lambda _machine, _reason: None
        """The node cannot continue, or could not start."""
        self._clock = clock
        self._network = network
        self._random = random
        self._trace = trace
        self._settings = settings
        self._host_clock: HostClock | None = None
        self.process: Process | None = None
        self._jobs: SimJobs | None = None
        self._scheduled_death: tuple[Death, Felt] | None = None

    # --- Running

    @property
    def votes(self) -> bool:
        return CONTROLLER in self._roles

    @property
    def is_broker(self) -> bool:
        return BROKER in self._roles

    def _config(self) -> BrokerConfig:
        return BrokerConfig.standalone(self._settings, listen=f"{self.name}:{NODE_PORT}")

    def format(self, cluster_id: str, voters: VoterSet | None) -> None:
        """A node that is not alone is formatted explicitly, before its first start; `voters` are the first ones."""
        random, now_ms = self._random.stream("format"), self._clock.now_ms()
        format_node(self.disk, random, self._config(), now_ms=now_ms, cluster_id=cluster_id, initial_voters=voters)

    def start(self) -> None:
        assert self.state is MachineState.DOWN
        self.life = Life(self.name, self.life.number + 1)
        self.on_start(self)
        self.state = MachineState.STARTING
        self.started_at_ms = self._clock.monotonic_ms()
        random = self._random.stream(f"life {self.life.number}")
        self.process = Process(self._clock, "" if self.name == ALONE else self.name, self._trace)
        self._host_clock = HostClock(self._clock, skew_ms=self.skew_ms, rate=self.rate, process=self.process)
        self._jobs = SimJobs(
            self._host_clock, random.stream("jobs"), longest_ms=self.longest_job_ms, felt=self._slow_job
        )
        self.node = node = Node(
            self._config(),
            clock=self._host_clock,
            random=random.stream("node"),
            disk=self.disk,
            jobs=self._jobs,
            network=self._network.host(self.name, self.process),
        )
        way = Unreliable(self._host_clock, random.stream("own requests"), self.own_conditions)
        node.channel = UnreliableChannel(node.channel, way)
        node.state_log = lambda state_log: UnreliableStateLog(state_log, way)
        node.failed = self._failed
        node.ready.when_done(lambda _: self._serving())
        self.process.run(lambda: self._start(node))

    def _start(self, node: Node) -> None:
        try:
            node.start()
        except (DataDirectoryError, MetadataLogError, OSError) as error:
            self._failed(f"it did not start: {error}")

    def _failed(self, reason: str) -> None:
        self.on_failure(self, reason)

    def stop(self) -> None:
        """Asks the node to stop; once it has, everything that it accepted is on disk."""
        node, process = self.node, self.process
        assert node is not None and process is not None
        self.state = MachineState.STOPPING
        self.leaving_lives.append(self.life)
        process.run(lambda: node.stop().when_done(lambda _: self.die(Death.KILL)))

    def jump_clock(self, by_ms: int) -> None:
        self.skew_ms = by_ms
        if self._host_clock is not None:
            self._host_clock.skew_ms = by_ms
        self._note_how_far_ahead()

    def drift(self, rate: float) -> None:
        """The clock runs at this rate from now on, after restarts too."""
        self._note_how_far_ahead()
        self.rate = rate
        if self._host_clock is not None:
            self._host_clock.drift(rate)

    def latest_ms(self) -> int:
        """The latest time that the node's clock has ever shown, or a later one."""
        if self.rate > 1.0:
            self._note_how_far_ahead()
        return self._clock.now_ms() + self._ahead_ms

    @property
    def ahead_ms(self) -> int:
        """How far the node's clock is ahead of the world's, or behind it."""
        return self.skew_ms if self._host_clock is None else self._host_clock.now_ms() - self._clock.now_ms()

    def _note_how_far_ahead(self) -> None:
        self._ahead_ms = max(self._ahead_ms, self.ahead_ms)

    def pause(self) -> None:
        """The process stands still; then its clients may have timed out, and the controller may have fenced it."""
        if self.process is not None:
            self.process.pause()
            self.leaving_lives.append(self.life)

    def resume(self) -> None:
        if self.process is not None and self.process.paused:
            self.started_at_ms = self._clock.monotonic_ms()
            self.process.resume()

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.paused

    def slow_jobs(self, longest_ms: float = USUAL_JOB_MS, felt: Felt = unnoticed) -> None:
        """Jobs take up to `longest_ms`, after restarts too; `felt` is called when one takes longer than usual."""
        self.longest_job_ms, self._slow_job = longest_ms, felt
        if self._jobs is not None:
            self._jobs.longest_ms, self._jobs.felt = longest_ms, felt

    @property
    def has_slow_disk(self) -> bool:
        return self.longest_job_ms > USUAL_JOB_MS

    @property
    def has_failed_directory(self) -> bool:
        if self.node is None or self.state is MachineState.STARTING:
            return False
        return any(directory.failure is not None for directory in self.node.partitions.directories())

    @property
    def had_failed_directory(self) -> bool:
        """Whether a data directory has ever failed; its broker cannot prove that it has lost nothing."""
        return self._had_failed_directory or self.has_failed_directory

    def _serving(self) -> None:
        if self.state is MachineState.STARTING:
            self.state = MachineState.SERVING
            self.on_serving(self)

    # --- Ending

    def schedule_death(self, death: Death, operations: int, felt: Felt = unnoticed) -> None:
        """Schedules the death for the n-th next change on disk, in the middle of it; then `felt` is called."""
        self._scheduled_death = death, felt
        self.disk.calls.crash_at = self.disk.operations + operations

    def cancel_death(self) -> None:
        self._scheduled_death = None
        self.disk.calls.crash_at = None

    def die_as_scheduled(self, crash: Crashed) -> None:
        """The node has raised `Crashed`."""
        if self._scheduled_death is None:
            raise AssertionError(f"a callback of {self.name} outlived it") from crash
        death, felt = self._scheduled_death
        felt()
        self.die(death)

    def die(self, death: Death) -> None:
        if self.sync_failed and not death.loses_power:
            death = Death.POWER_LOSS
        flushed = self.flushed()
        self._had_failed_directory = self.had_failed_directory
        self.last_log_ends = self._log_ends()
        self.state = MachineState.DOWN
        self.cancel_death()
        self.sync_failed = False
        if self._host_clock is not None:
            self._host_clock.stop()
            self._host_clock = self.process = None
            self._network.crash(self.name)
        self.node = None
        self._jobs = None
        if death.loses_power:
            self.power_losses += 1
            random = self._random.stream(f"power loss {self.power_losses}")
            self.disk = self.disk.crash(random, reorder=death is Death.REORDERING_POWER_LOSS)
        else:
            self.disk = self.disk.kill()
        self.on_death(self, death, flushed)

    def _log_ends(self) -> dict[TopicPartition, int]:
        node = self.node
        if node is None or not hasattr(node, "partitions"):
            return {}
        if self.state is MachineState.STARTING or self._had_failed_directory:
            return {}
        return {(partition.topic_id, partition.index): partition.log.end_offset for partition in node.partitions}

    def flushed(self) -> Flushed:
        """Per partition, the end of what is on disk according to its log."""
        node = self.node
        if node is None or not hasattr(node, "partitions"):
            return []
        return [((partition.topic_id, partition.index), partition.log.recovery_point) for partition in node.partitions]
