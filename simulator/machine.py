"""The machine a node runs on, and the ways it can come to an end there.

    start ──▶ starting ──▶ serving ──▶ stopping ──▶ down       the node's own way
                 └────────────┴────────────┴──────▶ down       kill: the page cache survives
                                                               power loss: only what was synced does, and perhaps more

Each start is a new life: a new clock, new jobs, a new place in the network, the same disk. Deaths can also be set up in
advance for the n-th next change on disk, so that they fall in the middle of an operation.
"""

from collections.abc import Callable
from enum import Enum

from quire.config.broker_config import BrokerConfig
from quire.node.node import Node
from quire.raft.errors import MetadataLogError
from quire.storage.errors import DataDirectoryError
from simulator.clients.client import NODE_HOST, NODE_PORT
from simulator.clock import HostClock, SimClock
from simulator.disk import Crashed, SimDisk
from simulator.jobs import SimJobs
from simulator.ledger import TopicPartition
from simulator.life import Life
from simulator.network import SimNetwork
from simulator.own_requests import OwnConditions, Unreliable, UnreliableChannel, UnreliableStateLog
from simulator.random import SimRandom
from simulator.trace import Trace

USUAL_JOB_MS = 5.0

Flushed = list[tuple[TopicPartition, int]]


class State(Enum):
    DOWN = "down"
    STARTING = "starting"
    SERVING = "serving"
    STOPPING = "stopping"


class Death(Enum):
    KILL = "killed"
    POWER_LOSS = "lost power"
    REORDERING_POWER_LOSS = "lost power, with writes out of order"

    @property
    def loses_power(self) -> bool:
        return self is not Death.KILL


class Machine:
    def __init__(
        self, clock: SimClock, network: SimNetwork, random: SimRandom, trace: Trace, settings: dict[str, str]
    ) -> None:
        self.disk = SimDisk(random.stream("disk"), cold_chance=0.05, now_ms=clock.now_ms, trace=trace)
        self.state = State.DOWN
        self.life = Life(0, 0)
        self.node: Node | None = None
        self.skew_ms = 0
        self._ahead_ms = 0
        self.longest_job_ms = USUAL_JOB_MS
        self.own_conditions = OwnConditions()
        """How the node's requests to its own parts fare."""
        self.sync_failed = False
        """A sync failed, so the page cache says more than will ever be on disk: this life ends with a power loss."""
        self.leaving_lives: list[int] = []
        self.started_at_ms = 0.0
        self.on_start: Callable[[], None] = _nothing
        self.on_serving: Callable[[], None] = _nothing
        self.on_death: Callable[[Death, Flushed], None] = lambda _death, _flushed: None
        self.on_failure: Callable[[str], None] = lambda _reason: None
        """The node cannot go on, or could not start."""
        self._clock = clock
        self._network = network
        self._random = random
        self._trace = trace
        self._settings = settings
        self._host_clock: HostClock | None = None
        self._jobs: SimJobs | None = None
        self._doom: Death | None = None

    # Living

    def start(self) -> None:
        assert self.state is State.DOWN
        self.life = Life(self.life.number + 1, self.life.era)
        self.on_start()
        self.state = State.STARTING
        self.started_at_ms = self._clock.monotonic_ms()
        random = self._random.stream(f"life {self.life.number}")
        self._host_clock = HostClock(self._clock, skew_ms=self.skew_ms)
        self._jobs = SimJobs(self._host_clock, random.stream("jobs"), longest_ms=self.longest_job_ms)
        config = BrokerConfig.standalone(self._settings, listen=f"{NODE_HOST}:{NODE_PORT}")
        self.node = Node(
            config,
            clock=self._host_clock,
            random=random.stream("node"),
            disk=self.disk,
            jobs=self._jobs,
            network=self._network.host(NODE_HOST),
        )
        way = Unreliable(self._host_clock, random.stream("own requests"), self.own_conditions)
        self.node.channel = UnreliableChannel(self.node.channel, way)
        self.node.state_log = lambda state_log: UnreliableStateLog(state_log, way)
        self.node.failed = self.on_failure
        self.node.ready.when_done(lambda _: self._serving())
        try:
            self.node.start()
        except (DataDirectoryError, MetadataLogError, OSError) as error:
            self.on_failure(f"it did not start: {error}")

    def stop(self) -> None:
        """Asks the node to stop; when it has, everything it was told is on disk."""
        assert self.node is not None
        self.state = State.STOPPING
        self.leaving_lives.append(self.life.number)
        self.node.stop().when_done(lambda _: self.die(Death.KILL))

    def jump_clock(self, by_ms: int) -> None:
        self.skew_ms = by_ms
        if self._host_clock is not None:
            self._host_clock.skew_ms = by_ms
        self._note_how_far_ahead()

    def latest_ms(self) -> int:
        """At least the latest time that the node's clock has ever shown."""
        return self._clock.now_ms() + self._ahead_ms

    def _note_how_far_ahead(self) -> None:
        node_ms = self._host_clock.now_ms() if self._host_clock is not None else self._clock.now_ms() + self.skew_ms
        self._ahead_ms = max(self._ahead_ms, node_ms - self._clock.now_ms())

    def stall(self, duration_ms: float) -> None:
        """The node does not run for so long; when it goes on, others may have given up on it, itself included."""
        if self._host_clock is not None:
            self._host_clock.stall(duration_ms)
            self._note_how_far_ahead()
            self.leaving_lives.append(self.life.number)

    def slow_jobs(self, longest_ms: float = USUAL_JOB_MS) -> None:
        self.longest_job_ms = longest_ms
        if self._jobs is not None:
            self._jobs.longest_ms = longest_ms

    @property
    def has_slow_disk(self) -> bool:
        return self.longest_job_ms > USUAL_JOB_MS

    @property
    def has_failed_directory(self) -> bool:
        if self.node is None or self.state is State.STARTING:
            return False
        return any(directory.failure is not None for directory in self.node.partitions.directories())

    def _serving(self) -> None:
        if self.state is State.STARTING:
            self.state = State.SERVING
            self.on_serving()

    # Dying

    def doom(self, death: Death, operations: int) -> None:
        """The node dies in the middle of the so-many-th change on disk from now."""
        self._doom = death
        self.disk.calls.crash_at = self.disk.operations + operations

    def spare(self) -> None:
        self._doom = None
        self.disk.calls.crash_at = None

    def doom_has_come(self, crash: Crashed) -> None:
        """`Crashed` came out of the node."""
        if self._doom is None:
            raise AssertionError("a node's callback outlived it") from crash
        self.die(self._doom)

    def die(self, death: Death) -> None:
        if self.sync_failed and not death.loses_power:
            death = Death.POWER_LOSS
        flushed = self.flushed()
        self.state = State.DOWN
        self.spare()
        self.sync_failed = False
        if self._host_clock is not None:
            self._host_clock.stop()
            self._host_clock = None
            self._network.crash(NODE_HOST)
        self.node = None
        self._jobs = None
        if death.loses_power:
            self.life = Life(self.life.number, self.life.era + 1)
            random = self._random.stream(f"power loss {self.life.era}")
            self.disk = self.disk.crash(random, reorder=death is Death.REORDERING_POWER_LOSS)
        else:
            self.disk = self.disk.kill()
        self.on_death(death, flushed)

    def flushed(self) -> Flushed:
        """Per partition, what its log believes to be on disk."""
        node = self.node
        if node is None or not hasattr(node, "partitions"):
            return []
        return [((partition.topic_id, partition.index), partition.log.recovery_point) for partition in node.partitions]


def _nothing() -> None:
    pass
