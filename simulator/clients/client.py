"""The base of all simulated clients: its own host, one connection to each node, retries, and finding the right node.

With one node every request goes there. In a cluster a client asks any node for leaders and coordinators, and retries
when it is told that it is wrong, or cannot connect.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from quire.protocol import apis
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.api_versions import ApiVersionsRequest
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest
from quire.protocol.messages.metadata import MetadataRequest
from quire.protocol.schema import Message
from quire.seams import Receiver, Transport
from simulator.checks.checker import Checker
from simulator.clients.routes import ANYWHERE, MISROUTED, Anywhere, Coordinator, Routes, Target
from simulator.clients.wire import Lost, Wire
from simulator.clock import SimClock
from simulator.consumer_group_ledger import ConsumerGroupBook
from simulator.group_ledger import GroupBook
from simulator.hosts import NODE_PORT
from simulator.ledger import Ledger, PartitionBook
from simulator.life import Life
from simulator.network import SimNetwork
from simulator.offset_ledger import OffsetLedger
from simulator.random import SimRandom
from simulator.tasks import Gate, Promise, sleep
from simulator.trace import Trace
from simulator.violation import Violation

T = TypeVar("T")

REQUEST_TIMEOUT_MS = 4000.0
MANY = 200
"""Clients that rest: then those that have rested are forgotten."""
BACKOFF_MS = (5.0, 150.0)
FIRST_METADATA_WITH_TOPIC_IDS = 10
FIRST_FIND_COORDINATOR_WITH_MANY_KEYS = 4
NO_COORDINATOR = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT)

TROUBLE = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT)
LEAVING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.INVALID_REPLICATION_FACTOR,
)


@dataclass(slots=True)
class Scene:
    """What all clients of a run share."""

    clock: SimClock
    network: SimNetwork
    random: SimRandom
    trace: Trace
    ledger: Ledger
    checker: Checker
    offsets: OffsetLedger
    nodes: list[str]
    """The brokers that serve clients, by host name: none in a cluster of scribes."""
    gates: dict[str, Gate]
    """Each is closed from a power loss of its node until the node's logs have been read: no client writes before."""
    lives: dict[str, Life]
    """The current life of every node."""
    misbehaviour: float = 0.02
    """How often a client sends a frame twice, breaks off in the middle of one or stops reading for a while."""
    most_replicas: int = 1
    """The largest replication factor of new topics."""
    pace: float = 1.0
    """How much longer than usual clients rest, until they are finishing."""
    needs_lull: bool = False
    """Clients have written less than they should have by now: after a burst of faults no new ones begin."""
    troubled_lives: list[Life] = field(default_factory=list)
    """Lives of nodes in which the disk had errors, so clients may see errors too."""
    slow_lives: list[Life] = field(default_factory=list)
    """Lives in which the disk was slow: requests of writers that wait for it may time out."""
    leaving_lives: list[Life] = field(default_factory=list)
    """Lives in which the node was asked to stop: it gives up its partitions before it closes connections."""
    drifting: dict[str, None] = field(default_factory=dict)
    """Nodes whose clocks are too fast or too slow now."""
    _clock_changes: int = 0
    _resting: list[Promise[None]] = field(default_factory=list)
    groups: dict[str, GroupBook] = field(default_factory=dict)
    consumer_groups: dict[str, ConsumerGroupBook] = field(default_factory=dict)
    moving: dict[tuple[str, int], None] = field(default_factory=dict)
    """Partitions, by topic and index, of which the replicas may change."""
    damaged: dict[tuple[str, int], None] = field(default_factory=dict)
    """Partitions of which one replica was damaged. Without the others, it could not be repaired."""
    finishing: bool = False
    at_rest: bool = False
    """All nodes have the same metadata, and nothing changes."""
    calm: bool = False
    """Faults have ended: every request must be answered."""

    @property
    def alone(self) -> bool:
        """Whether there is one node only."""
        return len(self.lives) == 1

    @property
    def era(self) -> int:
        """The number of power losses so far."""
        return self.ledger.era

    @property
    def starts(self) -> int:
        """How often nodes have started."""
        return sum(life.number for life in self.lives.values())

    @property
    def clock_changes(self) -> int:
        """A number that changes when a node's clock was changed, or a node paused, since the last call."""
        if self.drifting:
            self._clock_changes += 1
        return self._clock_changes

    def clock_changed(self) -> None:
        self._clock_changes += 1

    def era_of_requests(self) -> Callable[[], int]:
        """For a new connection: a node on its own breaks it when its power fails, and nothing later arrives on it."""
        connected_in = self.era
        return (lambda: connected_in) if self.alone else (lambda: self.era)

    def leader_of(self, book: PartitionBook) -> str:
        """The node that answers for a partition."""
        return book.leadership.leader or self.nodes[0]

    def will_move(self, topic: str, index: int) -> None:
        """What a single replica acknowledges may not be on the next one, whatever the replication factor was."""
        self.moving[topic, index] = None
        for book in self.ledger.topics.values():
            if book.name == topic:
                book.replication_factor = max(book.replication_factor, 2)

    async def gates_passed(self) -> None:
        for gate in self.gates.values():
            await gate.passed()

    def group(self, name: str) -> GroupBook:
        name = self.group_name(name)
        return self.groups.setdefault(name, GroupBook(name, self.ledger.counts, self.ledger.ticks))

    def consumer_group(self, name: str) -> ConsumerGroupBook:
        name = self.group_name(name)
        return self.consumer_groups.setdefault(name, ConsumerGroupBook(name, self.ledger.counts, self.ledger.ticks))

    def group_name(self, name: str) -> str:
        """The current name: every group gets a new one after a power loss that may lose coordinators' state."""
        lossy = not self.ledger.transactions.durable and self.era
        return f"{name}@{self.era}" if lossy else name

    def sleep(self, duration_ms: float) -> Promise[None]:
        """Rests for longer while clients are slow, and no longer than until they finish."""
        if self.finishing:
            return sleep(self.clock, duration_ms)
        rest = sleep(self.clock, duration_ms * self.pace)
        if len(self._resting) > MANY:
            self._resting = [each for each in self._resting if not each.settled]
        self._resting.append(rest)
        return rest

    def finish(self) -> None:
        """Clients start no new work, and finish what they have begun."""
        self.finishing = True
        for rest in self._resting:
            rest.keep(None)
        self._resting.clear()

    def tell(self, line: str) -> None:
        self.trace.tell(f"{self.clock.monotonic_ms():10.3f} {line}")


class SimClient:
    passes_the_gate = True
    """Whether it waits until the logs have been read after a power loss."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = scene.random.stream(name)
        self.wire: Wire | None = None
        """The connection that was used last."""
        self.routes = Routes()
        self._wires: dict[str, Wire] = {}
        self.sent_twice = False
        """Whether the last request was sent twice."""
        self._gone = False
        self._ranges: dict[int, tuple[int, int]] = {}
        self._versions: dict[int, int] = {}

    # --- Connecting

    async def connected(self, to: Target = ANYWHERE) -> Wire:
        """The connection to the node that answers for `to`, or a new one; retries until there is one."""
        while True:
            host = await self.host_of(to)
            wire = self._wires.get(host)
            if wire is not None and wire.lost is None:
                self.wire = wire
                return wire
            if self.passes_the_gate:
                await self.scene.gates[host].passed()
            try:
                self.wire = self._wires[host] = wire = await self._connect(host)
                if self.passes_the_gate and not self.scene.gates[host].is_open:
                    wire.abort()
                else:
                    await self._introduce(wire)
            except (OSError, Lost):
                self.routes.forget()
                await self.back_off()

    async def host_of(self, target: Target) -> str:
        """The node that answers for a target, as this client knows."""
        if self.scene.alone:
            return self.scene.nodes[0]
        if isinstance(target, str):
            return target
        if isinstance(target, Anywhere):
            return self._any_host()
        while (host := self.routes.host_of(target)) is None:
            if isinstance(target, PartitionBook) and target.topic.deletion_asked:
                return self._any_host()  # which does not know it either
            try:
                await (self._find(target) if isinstance(target, Coordinator) else self._find_leaders())
            except Lost:
                await self.back_off()
                continue
            if self.routes.host_of(target) is None:
                await self.back_off()
        return host

    def _any_host(self) -> str:
        """One that it is connected to, or any whose gate is open."""
        connected = [host for host, wire in self._wires.items() if wire.lost is None]
        reachable = [node for node in self.scene.nodes if self.scene.gates[node].is_open or not self.passes_the_gate]
        return self.random.choice(connected or reachable or self.scene.nodes)

    async def _find_leaders(self) -> None:
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        self.routes.learn_leaders(await self.ask(request, at_least=FIRST_METADATA_WITH_TOPIC_IDS))

    async def _find(self, target: Coordinator) -> None:
        request = FindCoordinatorRequest(key_type=target.key_type, coordinator_keys=[target.key])
        found = (await self.ask(request, at_least=FIRST_FIND_COORDINATOR_WITH_MANY_KEYS)).coordinators[0]
        error = self.expect(found.error_code, f"FindCoordinator of {target.key}", *NO_COORDINATOR)
        if error is ErrorCode.NONE:
            self.routes.learn_coordinator(target, found.host)

    def _connect(self, host: str) -> Promise[Wire]:
        promise: Promise[Wire] = Promise()

        def connected(transport: Transport) -> Receiver:
            self.scene.ledger.counts.connections += 1
            wire = Wire(self.scene.clock, transport, self.name, self.scene.lives[host], self.scene.era_of_requests())
            promise.keep(wire)
            if self._gone:
                wire.abort()
            return wire

        self.scene.network.host(self.name).connect(host, NODE_PORT, connected, promise.fail)
        return promise

    async def _introduce(self, wire: Wire) -> None:
        version = self.random.below(5)
        request = ApiVersionsRequest(client_software_name="simulated", client_software_version="1")
        if version < 3:
            request = ApiVersionsRequest()
        response = await self.answer(wire.ask(request, version, REQUEST_TIMEOUT_MS)[0])
        self.expect(response.error_code, "ApiVersions")
        self._ranges = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}

    def version(self, request: type[Message], at_least: int = 0, at_most: int = 99) -> int:
        """The version this client uses: any that both sides support, the same throughout a run if possible."""
        key = request.API_KEY
        ours, theirs = apis.VALID_VERSIONS[key], self._ranges[key]
        oldest, newest = max(ours[0], theirs[0], at_least), min(ours[1], theirs[1], at_most)
        if not oldest <= self._versions.get(key, -1) <= newest:
            self._versions[key] = oldest + self.random.below(newest - oldest + 1)
        return self._versions[key]

    async def back_off(self) -> None:
        await self.scene.sleep(self.random.between(*BACKOFF_MS))

    # --- Asking

    async def ask(
        self,
        request: Message,
        to: Target = ANYWHERE,
        *,
        at_least: int = 0,
        at_most: int = 99,
        timeout_ms: float = REQUEST_TIMEOUT_MS,
    ) -> Any:
        """One attempt; raises Lost if the outcome is unknown."""
        wire = await self.connected(to)
        return await self.ask_on(wire, request, at_least=at_least, at_most=at_most, timeout_ms=timeout_ms)

    async def ask_on(
        self,
        wire: Wire,
        request: Message,
        *,
        at_least: int = 0,
        at_most: int = 99,
        timeout_ms: float = REQUEST_TIMEOUT_MS,
    ) -> Any:
        """One attempt on this connection."""
        version = self.version(type(request), at_least, at_most)
        return await self.answer(self.send(wire, request, version, timeout_ms))

    def send(self, wire: Wire, request: Message, version: int, timeout_ms: float = REQUEST_TIMEOUT_MS) -> Promise[Any]:
        """Sends a request, sometimes twice or only in part, and returns a promise of the first answer."""
        counts = self.scene.ledger.counts
        counts.requests += 1
        if self.misbehaves():
            wire.break_off(request, version, self.random.between(0.0, 1.0))
        if self.misbehaves():
            wire.nap(self.random.between(1.0, 400.0))
        self.sent_twice = self.misbehaves()
        return wire.ask(request, version, timeout_ms, copies=1 + self.sent_twice)[0]

    def misbehaves(self) -> bool:
        return not self.scene.calm and self.random.chance(self.scene.misbehaviour)

    async def answer(self, promise: Promise[T]) -> T:
        try:
            return await promise
        except Lost as lost:
            self.scene.ledger.counts.lost_requests += 1
            if self.scene.calm:
                raise Violation("every request is answered", f"{self.name} got none: {lost}") from lost
            raise

    def expect(self, code: int, what: str, *allowed: ErrorCode) -> ErrorCode:
        """The error code of an answer, which must be NONE or one of those allowed."""
        error = ErrorCode(code)
        if error is not ErrorCode.NONE:
            self.scene.ledger.counts.error(error.name)
            if error in self.lost_ways:
                self.routes.forget()
            elif error not in allowed:
                raise Violation("errors have a cause", f"{self.name} got {error.name} for {what}")
        return error

    @property
    def lost_ways(self) -> tuple[ErrorCode, ...]:
        """Errors that say that the request went to the wrong node, or to one that does not know yet."""
        return () if self.scene.alone else MISROUTED

    @property
    def knows_everything(self) -> bool:
        """Whether any node has all metadata that was acknowledged: in a cluster some may lag behind."""
        return self.scene.alone or self.scene.at_rest

    @property
    def excuses(self) -> tuple[ErrorCode, ...]:
        """Errors that are allowed from a node whose disk has errors, or that is stopping."""
        asked = self.wire.life if self.wire is not None else None
        in_trouble, leaving = asked in self.scene.troubled_lives, asked in self.scene.leaving_lives
        if not self.scene.alone and not self.scene.calm:
            # The node may have asked another one.
            return TROUBLE + LEAVING
        return (TROUBLE if in_trouble else ()) + (LEAVING if leaving else ())

    @property
    def disk_may_be_late(self) -> bool:
        """Whether the node had a slow disk, or was paused."""
        asked = self.wire.life if self.wire is not None else None
        return asked in self.scene.slow_lives or asked in self.scene.leaving_lives

    async def run(self) -> None:
        """Works until the run is finishing, then finishes what it has begun."""
        raise NotImplementedError

    async def by_leader(self, books: Sequence[PartitionBook]) -> dict[str, list[PartitionBook]]:
        """Partitions by the node that leads them, as this client knows."""
        found: dict[str, list[PartitionBook]] = {}
        for book in books:
            found.setdefault(await self.host_of(book), []).append(book)
        return found

    def hang_up(self) -> None:
        """Breaks all connections, as a client that crashes."""
        for wire in self._wires.values():
            wire.abort()

    def close(self) -> None:
        """Ends the connections, even one that is still being established."""
        self._gone = True
        for wire in self._wires.values():
            wire.close()
