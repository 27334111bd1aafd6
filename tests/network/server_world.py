"""A server in memory whose handler executes the command in each request, and its clients."""

from collections.abc import Callable

from quire.network.handler import CloseConnection, ConnectionInfo, EncodedResponse
from quire.network.limits import Limits
from quire.network.server import Server
from quire.pending import Pending
from simulator.clock import HostClock, SimClock
from tests.network.memory import MemoryNetwork, MemoryTransport, frame

MB = 1024 * 1024


class ServerWorld:
    """A server whose handler executes the command in the request, and a client of it.

    echo: answers with the request; slow: the same, after ten milliseconds; park: answers when `complete` is called;
    big: answers with a megabyte; silent: does not answer; close and bug: raise.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.clock = SimClock()
        self.host_clock = HostClock(self.clock)
        self.network = MemoryNetwork(self.clock)
        self.limits = limits or Limits()
        self.server = Server(self.network, self.host_clock, self.handle, self.limits)
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
        }
        if verb == b"close":
            raise CloseConnection("the request said so")
        if verb == b"slow":
            self.host_clock.stall(10)
        if verb == b"bug":
            raise RuntimeError("a bug")
        return actions.get(verb, lambda: [frame(text)])()

    def park(self, text: bytes) -> Pending[EncodedResponse]:
        pending: Pending[EncodedResponse] = Pending()
        self.parked.append((text, pending))
        return pending

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
