"""Connections between named hosts on virtual time: the simulated Network seam.

Each node and client gets `network.host(name)` as its Network and reaches others by host name (localhost and 127.0.0.1
are the host itself). Latency, chunking, slow segments and broken connections come from `Conditions` and a seed. What
happens on a host runs in its `Process`, so it waits while that is paused. `crash` removes a host with all its
connections.

A partition is a set of (from, to) pairs of hosts under a name: one way, both ways, a ring. Several may overlap; they
heal one by one. What is sent across one is held back, as by TCP's retransmission, until no partition is in the way.

Order is kept within a connection only: what was sent before a connection was lost, or over a slow link, may arrive
after what the same host sent later over another connection.
"""

import errno
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from quire.seams import Receiver, Transport
from simulator.clock import SimClock
from simulator.fault_counts import Felt, unnoticed
from simulator.process import Process
from simulator.random import SimRandom
from simulator.trace import Trace
from simulator.transport import SimTransport

__all__ = ["Conditions", "SimHost", "SimNetwork", "SimTransport"]

ITSELF = ("localhost", "127.0.0.1", "0.0.0.0", "::1", "::", "")

Accept = Callable[[Transport], Receiver | None]

Pair = tuple[str, str]
"""From one host to another."""


@dataclass(slots=True)
class Conditions:
    """How good the network is. The defaults are a healthy local one that still cuts messages anywhere."""

    latency_ms: tuple[float, float] = (0.05, 1.0)
    slow_chance: float = 0.0
    slow_ms: float = 500.0
    break_chance: float = 0.0
    """Per segment sent: the connection breaks."""
    small_segment_chance: float = 0.2
    segment_bytes: int = 16384
    window_bytes: int = 65536
    connect_timeout_ms: float = 5000.0
    felt: Felt = unnoticed
    """Called when they make a message slow or break a connection."""


@dataclass(slots=True)
class SimListener:
    """Implements `quire.seams.Listener`."""

    accept: Accept
    port: int
    _listeners: dict[int, "SimListener"] = field(repr=False)

    def close(self) -> None:
        self._listeners.pop(self.port, None)


class SimNetwork:
    def __init__(
        self,
        clock: SimClock,
        random: SimRandom,
        conditions: Conditions | None = None,
        *,
        trace: Trace | None = None,
    ) -> None:
        self.clock = clock
        self.conditions = conditions or Conditions()
        self._random = random
        self._trace = trace
        self._hosts: dict[str, SimHost] = {}
        self._partitions: dict[str, tuple[frozenset[Pair], Felt]] = {}
        self._refusals: dict[str, tuple[frozenset[Pair], Felt]] = {}
        self._delays: dict[str, tuple[dict[Pair, float], Felt]] = {}
        self._held: list[tuple[Pair, Callable[[], None]]] = []
        self._connections: list[SimTransport] = []
        self._connection_count = 0

    # --- Hosts and their faults

    def host(self, name: str, process: Process | None = None) -> "SimHost":
        """The network as `name` sees it. Asking again for a crashed host gives it a new life."""
        if name not in self._hosts:
            self._hosts[name] = SimHost(self, name, process or Process(self.clock))
        return self._hosts[name]

    def crash(self, name: str) -> None:
        """Removes the host without notice; its peers see their connections reset."""
        self._hosts.pop(name).alive = False
        for end in self._connections:
            if end.host == name:
                end.vanish()

    def partition(self, name: str, pairs: Iterable[Pair], felt: Felt = unnoticed) -> None:
        """Holds back everything between these hosts until `heal(name)`, and calls `felt` when it does."""
        self._partitions[name] = frozenset(pairs), felt

    def cut(self, source: str, target: str, *, one_way: bool = False, felt: Felt = unnoticed) -> str:
        """Holds back everything from `source` to `target`, and back unless `one_way`; returns the partition's name."""
        name = f"{source}{'>' if one_way else '|'}{target}"
        self.partition(name, [(source, target)] if one_way else [(source, target), (target, source)], felt)
        return name

    def heal(self, name: str | None = None) -> None:
        """Ends one partition, or all; what no other one holds back arrives, in order."""
        if name is None:
            self._partitions.clear()
        else:
            self._partitions.pop(name, None)
        held, self._held = self._held, []
        for pair, schedule in held:
            if self.is_cut(*pair):
                self._held.append((pair, schedule))
            else:
                schedule()

    def is_cut(self, source: str, target: str) -> bool:
        return any((source, target) in pairs for pairs, _ in self._partitions.values())

    def holds_back(self, source: str, target: str) -> bool:
        """As `is_cut`, for a message that is being sent: every partition in its way takes effect."""
        return _in_the_way(self._partitions, source, target)

    @property
    def partitions(self) -> list[str]:
        return list(self._partitions)

    def refuse(self, name: str, pairs: Iterable[Pair], felt: Felt = unnoticed) -> None:
        """Refuses connections between these hosts until `stop_refusing(name)`, although the other host listens."""
        self._refusals[name] = frozenset(pairs), felt

    def stop_refusing(self, name: str | None = None) -> None:
        if name is None:
            self._refusals.clear()
        else:
            self._refusals.pop(name, None)

    def refuses(self, source: str, target: str) -> bool:
        """Whether a connection that is being opened is refused."""
        return _in_the_way(self._refusals, source, target)

    def delay(self, name: str, delays: Mapping[Pair, float], felt: Felt = unnoticed) -> None:
        """Makes each of these pairs slower by so many milliseconds until `stop_delaying(name)`."""
        self._delays[name] = dict(delays), felt

    def stop_delaying(self, name: str | None = None) -> None:
        """What is on its way takes as long as it would have."""
        if name is None:
            self._delays.clear()
        else:
            self._delays.pop(name, None)

    def latency_between(self, source: str, target: str) -> float:
        """The latency of one message, drawn."""
        latency_ms = self.latency_ms()
        if not self._delays:
            return latency_ms
        for delays, felt in self._delays.values():
            if (source, target) in delays:
                latency_ms += delays[source, target]
                felt()
        return latency_ms

    def lose_connections(self, host: str, other: str) -> int:
        """`host` loses its connections with `other`, which still gets what is on its way, and then a reset.

        So it may get a request twice, if `host` retries it, and in any order. Returns how many there were.
        """
        ends = [end for end in self._ends_of(host) if end.other.host == other]
        for end in ends:
            end.lose()
        return len(ends)

    def break_connections(self, host: str, other: str | None = None) -> int:
        """Resets every connection of `host` (with `other` only, if given); how many there were."""
        ends = [end for end in self._ends_of(host) if other is None or end.other.host == other]
        for end in ends:
            end.break_down()
        return len(ends)

    def connections(self, host: str) -> int:
        return len(self._ends_of(host))

    def peers(self, host: str) -> set[str]:
        """The hosts that it has connections with."""
        return {end.other.host for end in self._ends_of(host)}

    # --- For hosts and transports

    def find(self, name: str) -> "SimHost | None":
        return self._hosts.get(name)

    def connection(self, client: str, server: str, port: int) -> tuple[SimTransport, SimTransport]:
        self._connection_count += 1
        number = self._connection_count
        near = SimTransport(self, client, f"{client}>{server}#{number}", f"{server}:{port}")
        far = SimTransport(self, server, f"{server}>{client}#{number}", f"{client}:{40000 + number}")
        near.other, far.other = far, near
        self._connections = [end for end in self._connections if not end.forgotten]
        self._connections += (near, far)
        return near, far

    def transmit(self, sender: SimTransport, note: str, arrive: Callable[[], None]) -> None:
        """Calls `arrive` on the other host, after everything that `sender` sent before."""
        source, target = sender.host, sender.other.host
        if self._trace is not None and note:
            self._trace.note(f"{self.clock.monotonic_ms():.3f} {sender.name} {note}")
        if self._partitions and self.holds_back(source, target):
            self._held.append(((source, target), partial(self._send, sender, arrive)))
        else:
            self._send(sender, arrive)

    def _send(self, sender: SimTransport, arrive: Callable[[], None]) -> None:
        target = sender.other.host
        latency_ms = self.latency_between(sender.host, target)
        now_ms = self.clock.monotonic_ms()
        # Strictly later than what was sent before: equal times could swap when a delay is added to another "now".
        sender.arrival_ms = max(sender.arrival_ms + 1e-6, now_ms + latency_ms)
        self.clock.call_later(sender.arrival_ms - now_ms, partial(self.run_on, target, arrive))

    def call_soon(self, host: str, callback: Callable[[], None]) -> None:
        self.clock.call_soon(partial(self.run_on, host, callback))

    def run_on(self, name: str, callback: Callable[[], None]) -> None:
        """Runs it in the host's process; at once for a host that is gone, whose connections end."""
        host = self._hosts.get(name)
        if host is None:
            callback()
        else:
            host.process.run(callback)

    def latency_ms(self) -> float:
        conditions = self.conditions
        slow_ms = 0.0
        if self._random.chance(conditions.slow_chance):
            slow_ms = conditions.slow_ms
            conditions.felt()
        return self._random.between(*conditions.latency_ms) + slow_ms

    def segment_size(self, most: int) -> int:
        most = min(most, self.conditions.segment_bytes)
        if self._random.chance(self.conditions.small_segment_chance):
            return 1 + self._random.below(most)
        return most

    def breaks_now(self) -> bool:
        breaks = self._random.chance(self.conditions.break_chance)
        if breaks:
            self.conditions.felt()
        return breaks

    @property
    def window_bytes(self) -> int:
        return self.conditions.window_bytes

    def _ends_of(self, host: str) -> list[SimTransport]:
        return [end for end in self._connections if end.host == host and not end.ended]


class SimHost:
    """Implements `quire.seams.Network` for one host."""

    def __init__(self, network: SimNetwork, name: str, process: Process) -> None:
        self.name = name
        self.process = process
        self.alive = True
        self.listeners: dict[int, SimListener] = {}
        self._network = network

    def listen(self, host: str, port: int, accept: Accept) -> SimListener:
        if port == 0:
            port = next(free for free in range(20000, 65536) if free not in self.listeners)
        if port in self.listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listener = self.listeners[port] = SimListener(accept, port, self.listeners)
        return listener

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        server = self.name if host in ITSELF else host
        network, clock = self._network, self._network.clock

        def fail(error: Exception) -> None:
            if self.alive:
                self.process.run(lambda: failed(error))

        def knock() -> None:
            target = network.find(server)
            listener = target.listeners.get(port) if target is not None else None
            if listener is None or target is None or network.refuses(self.name, server):
                refused = ConnectionRefusedError(errno.ECONNREFUSED, f"nothing listens on {server}:{port}")
                clock.call_later(network.latency_between(server, self.name), lambda: fail(refused))
            elif self.alive:
                self._open(listener, target, connected)

        if network.holds_back(self.name, server) or network.holds_back(server, self.name):
            timed_out = TimeoutError(errno.ETIMEDOUT, f"no answer from {server}:{port}")
            clock.call_later(network.conditions.connect_timeout_ms, lambda: fail(timed_out))
        else:
            clock.call_later(network.latency_between(self.name, server), knock)

    def _open(self, listener: SimListener, server: "SimHost", connected: Callable[[Transport], Receiver]) -> None:
        """The server's kernel accepts; its process gets the connection when it runs."""
        near, far = self._network.connection(self.name, server.name, listener.port)

        def arrived() -> None:
            if self.alive:
                near.begin(connected(near))

        def accept() -> None:
            receiver = listener.accept(far)
            if receiver is None:
                far.abort()
            else:
                far.begin(receiver)

        self._network.transmit(far, "accepted", arrived)
        server.process.run(accept)


def _in_the_way(separations: Mapping[str, tuple[frozenset[Pair], Felt]], source: str, target: str) -> bool:
    found = False
    for pairs, felt in separations.values():
        if (source, target) in pairs:
            felt()
            found = True
    return found
