"""A server in memory whose handler does what each request says, and its clients."""

from collections.abc import Callable

from quire.network.handler import CloseConnection, ConnectionInfo, EncodedResponse
from quire.network.limits import Limits
from quire.network.server import Server
from quire.pending import Pending
from simulator.clock import HostClock, SimClock
from tests.network.memory import MemoryNetwork, MemoryTransport, frame

MB = 1024 * 1024


class Late(Pending[EncodedResponse]):
    __slots__ = ()

    holds_up_next = False


def may_follow_late(request: memoryview) -> bool:
    return bytes(request[:4]) in (b"late", b"lets")


class ServerWorld:
    """A server whose handler does what the request says, and a client of it.

    echo: answers with the request; slow: the same, after ten milliseconds; park: answers when `complete` is called;
    late: the same, and only requests that begin so are handled before the answer; lets: completes the first late
    answer, then as late; latepk: as park; big: answers with a megabyte; silent: does not answer; close and bug: raise.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.clock = SimClock()
        self.host_clock = HostClock(self.clock)
        self.network = MemoryNetwork(self.clock)
        self.limits = limits or Limits()
        self.server = Server(self.network, self.host_clock, self.handle, self.limits, may_follow=may_follow_late)
        self.server.listen("PLAINTEXT", "127.0.0.1", 0)
        self.parked: list[tuple[bytes, Pending[EncodedResponse]]] = []
        self.handled: list[bytes] = []
        self.infos: list[ConnectionInfo] = []

    def handle(self, info: ConnectionInfo, request: memoryview) -> EncodedResponse | Pending[EncodedResponse]:
        text = bytes(request)
        self.handled.append(text)
        self.infos.append(info)
        verb = text[:6].rstrip(b".")
        actions: dict[bytes, Callable[[], EncodedResponse | Pending[EncodedResponse]]] = {
            b"park": lambda: self.park(text),
            b"big": lambda: [frame(text), b"", frame(b"x" * MB)],
            b"silent": lambda: None,
            b"done": lambda: self.done(text),
            b"late": lambda: self.park(text, Late()),
            b"latepk": lambda: self.park(text),
            b"lets": lambda: self.let(text),
        }
        if verb == b"close":
            raise CloseConnection("the request said so")
        if verb == b"slow":
            self.host_clock.stall(10)
        if verb == b"bug":
            raise RuntimeError("a bug")
        return actions.get(verb, lambda: [frame(text)])()

    def park(self, text: bytes, pending: Pending[EncodedResponse] | None = None) -> Pending[EncodedResponse]:
        pending = pending or Pending()
        self.parked.append((text, pending))
        return pending

    def let(self, text: bytes) -> Pending[EncodedResponse]:
        self.complete()
        return self.park(text, Late())

    def done(self, text: bytes) -> Pending[EncodedResponse]:
        pending: Pending[EncodedResponse] = Pending()
        pending.complete([frame(text)])
        return pending

    def complete(self) -> None:
        text, pending = self.parked.pop(0)
        pending.complete([frame(text)])

    def client(self, takes: int | None = None) -> MemoryTransport:
        return self.network.client(takes=takes)

    def settle(self) -> None:
        self.clock.run_for(0)
