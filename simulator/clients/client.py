"""What all simulated clients share: a host of their own, one connection at a time, and the patience to ask again."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from quire.protocol import apis
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.api_versions import ApiVersionsRequest
from quire.protocol.schema import Message
from quire.seams import Receiver, Transport
from simulator.checker import Checker
from simulator.clients.wire import Lost, Wire
from simulator.clock import SimClock
from simulator.consumer_group_ledger import ConsumerGroupBook
from simulator.group_ledger import GroupBook
from simulator.ledger import Ledger
from simulator.life import Life
from simulator.network import SimNetwork
from simulator.offset_ledger import OffsetLedger
from simulator.random import SimRandom
from simulator.tasks import Gate, Promise, sleep
from simulator.trace import Trace
from simulator.violation import Violation

T = TypeVar("T")

NODE_HOST = "node"
NODE_PORT = 9092
REQUEST_TIMEOUT_MS = 4000.0
BACKOFF_MS = (5.0, 150.0)

TROUBLE = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT)
LEAVING = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_REPLICATION_FACTOR)


@dataclass(slots=True)
class Scene:
    """What surrounds the clients of one run."""

    clock: SimClock
    network: SimNetwork
    random: SimRandom
    trace: Trace
    ledger: Ledger
    checker: Checker
    offsets: OffsetLedger
    gate: Gate
    """Closed from a power loss until what is left has been looked at: nobody may write in between."""
    life: Life
    """The node's life now."""
    misbehaviour: float = 0.02
    """How often a client sends a frame twice, breaks off in the middle of one or stops reading for a while."""
    troubled_lives: list[int] = field(default_factory=list)
    """Lives of the node in which the disk had errors, so clients may be told of some."""
    slow_lives: list[int] = field(default_factory=list)
    """Lives in which the disk was slow: writers that wait for it may be told that it took too long."""
    leaving_lives: list[int] = field(default_factory=list)
    """Lives in which the node was asked to stop: it gives up its partitions before it closes connections."""
    clock_changes: int = 0
    """How often the node's clock was changed, or stood still."""
    groups: dict[str, GroupBook] = field(default_factory=dict)
    consumer_groups: dict[str, ConsumerGroupBook] = field(default_factory=dict)
    finishing: bool = False
    """No new work; what is under way is brought to its end."""
    calm: bool = False
    """There are no faults any more: every request must be answered."""

    @property
    def disk_trouble(self) -> bool:
        return self.life.number in self.troubled_lives

    def group(self, name: str) -> GroupBook:
        name = self.group_name(name)
        return self.groups.setdefault(name, GroupBook(name, self.ledger.counts, self.ledger.ticks))

    def consumer_group(self, name: str) -> ConsumerGroupBook:
        name = self.group_name(name)
        return self.consumer_groups.setdefault(name, ConsumerGroupBook(name, self.ledger.counts, self.ledger.ticks))

    def group_name(self, name: str) -> str:
        """After a power loss that may have taken what coordinators knew, every group goes by a new one."""
        lossy = not self.ledger.transactions.durable and self.life.era
        return f"{name}@{self.life.era}" if lossy else name

    def sleep(self, duration_ms: float) -> Promise[None]:
        return sleep(self.clock, duration_ms)

    def tell(self, line: str) -> None:
        self.trace.tell(f"{self.clock.monotonic_ms():10.3f} {line}")


class SimClient:
    passes_the_gate = True
    """Whether it waits until the log has been looked at after a power loss."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = scene.random.stream(name)
        self.wire: Wire | None = None
        self.sent_twice = False
        """Whether the last request went out twice."""
        self._gone = False
        self._ranges: dict[int, tuple[int, int]] = {}
        self._versions: dict[int, int] = {}

    # Connecting

    async def connected(self) -> Wire:
        """The connection, a new one if the last is gone; tries until there is one."""
        while self.wire is None or self.wire.lost is not None:
            if self.passes_the_gate:
                await self.scene.gate.passed()
            try:
                self.wire = wire = await self._connect()
                if self.passes_the_gate and not self.scene.gate.is_open:
                    wire.abort()
                else:
                    await self._introduce(wire)
            except (OSError, Lost):
                await self.back_off()
        return self.wire

    def _connect(self) -> Promise[Wire]:
        promise: Promise[Wire] = Promise()

        def connected(transport: Transport) -> Receiver:
            self.scene.ledger.counts.connections += 1
            wire = Wire(self.scene.clock, transport, self.name, self.scene.life)
            promise.keep(wire)
            if self._gone:
                wire.abort()
            return wire

        self.scene.network.host(self.name).connect(NODE_HOST, NODE_PORT, connected, promise.fail)
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
        """The version this client speaks: any that both sides know, the same throughout a run where it can be."""
        key = request.API_KEY
        ours, theirs = apis.VALID_VERSIONS[key], self._ranges[key]
        oldest, newest = max(ours[0], theirs[0], at_least), min(ours[1], theirs[1], at_most)
        if not oldest <= self._versions.get(key, -1) <= newest:
            self._versions[key] = oldest + self.random.below(newest - oldest + 1)
        return self._versions[key]

    async def back_off(self) -> None:
        await self.scene.sleep(self.random.between(*BACKOFF_MS))

    # Asking

    async def ask(
        self, request: Message, *, at_least: int = 0, at_most: int = 99, timeout_ms: float = REQUEST_TIMEOUT_MS
    ) -> Any:
        """One attempt; Lost when nobody knows what became of it."""
        wire = await self.connected()
        version = self.version(type(request), at_least, at_most)
        return await self.answer(self.send(wire, request, version, timeout_ms))

    def send(self, wire: Wire, request: Message, version: int, timeout_ms: float = REQUEST_TIMEOUT_MS) -> Promise[Any]:
        """Sends a request, sometimes twice, and promises the first answer; sometimes only a part of it goes out."""
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
            if error not in allowed:
                raise Violation("errors have a cause", f"{self.name} got {error.name} for {what}")
        return error

    @property
    def excuses(self) -> tuple[ErrorCode, ...]:
        """What a client may be told by a node whose disk has trouble, or that is on its way out."""
        asked = self.wire.life.number if self.wire is not None else -1
        in_trouble, leaving = asked in self.scene.troubled_lives, asked in self.scene.leaving_lives
        return (TROUBLE if in_trouble else ()) + (LEAVING if leaving else ())

    @property
    def disk_may_be_late(self) -> bool:
        """Whether the node asked had a slow disk, or did not run for a while."""
        asked = self.wire.life.number if self.wire is not None else -1
        return asked in self.scene.slow_lives or asked in self.scene.leaving_lives

    async def run(self) -> None:
        """Works until the run is finishing, and brings to an end what it has begun."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the connection, also one that is still being made."""
        self._gone = True
        if self.wire is not None:
            self.wire.close()
