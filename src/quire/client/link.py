"""A connection that comes back: calls wait until it is ready, fail when it breaks, and it backs off before it retries.

A call is answered exactly once: with the broker's message, or with the reason why there is none. A call that times out
takes the connection with it, because every answer behind it would wait for the same silence. `Cluster` keeps one link
per broker address.
"""

from collections import deque

from quire.client.backoff import Backoff
from quire.client.connection import Connection, Versions
from quire.client.errors import ClientError, DisconnectedError, TimedOutError, UnreachableError
from quire.client.servers import Address
from quire.pending import Pending
from quire.protocol.errors import ProtocolError
from quire.protocol.schema import Message
from quire.seams import Clock, Network, Random, Timer, Transport

Outcome = Message | Exception | None  # None: sent, and no answer is to come


class Call:
    """One request on its way; `answered` is false where the broker will not answer (Produce with acks=0)."""

    __slots__ = ("answered", "correlation_id", "request", "result", "timer", "versions")

    def __init__(self, request: Message, answered: bool, versions: Versions | None) -> None:
        self.request = request
        self.answered = answered
        self.versions = versions
        self.result: Pending[Outcome] = Pending()
        self.timer: Timer | None = None
        self.correlation_id = -1

    def finish(self, outcome: Outcome) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.result.complete_once(outcome)


class _Session:
    """One transport's life. A link that gave it up no longer listens to it."""

    __slots__ = ("connection", "link", "transport")

    def __init__(self, link: "Link", transport: Transport, client_id: str) -> None:
        self.link = link
        self.transport = transport
        self.connection = Connection(client_id)

    def buffer(self) -> memoryview:
        return self.connection.buffer()

    def received(self, size: int) -> None:
        if self.link.session is self:
            self.link.received(size)

    def drained(self) -> None:
        if self.link.session is self:
            self.link.drained()

    def closed(self, reason: str) -> None:
        if self.link.session is self:
            self.link.closed(reason)

    def flush(self) -> None:
        if self.connection.outgoing:
            outgoing, self.connection.outgoing = self.connection.outgoing, []
            self.transport.write(outgoing)


class Link:
    def __init__(self, address: Address, client_id: str, clock: Clock, network: Network, random: Random) -> None:
        self.address = address
        self.session: _Session | None = None
        self._client_id = client_id
        self._clock = clock
        self._network = network
        self._backoff = Backoff(random)
        self._opening = False
        self._resting = False
        self._closed = False
        self._waiting: deque[Call] = deque()
        self._leaving: list[Call] = []
        self._in_flight: dict[int, Call] = {}

    @property
    def ready(self) -> bool:
        return self.session is not None and self.session.connection.ready

    @property
    def resting(self) -> bool:
        """Whether it failed a moment ago, and a call would have to wait before the next attempt."""
        return self._resting

    @property
    def load(self) -> int:
        return len(self._waiting) + len(self._in_flight)

    def call(
        self, request: Message, timeout_ms: float, *, answered: bool = True, versions: Versions | None = None
    ) -> Pending[Outcome]:
        call = Call(request, answered, versions)
        if self._closed:
            call.finish(DisconnectedError("the client is closed"))
            return call.result
        call.timer = self._clock.call_later(timeout_ms, lambda: self._expire(call, timeout_ms))
        self._waiting.append(call)
        if self.session is not None:
            self._send_waiting(self.session)
        elif not self._resting:
            self._open()
        return call.result

    def close(self) -> None:
        self._closed = True
        session, self.session = self.session, None
        if session is not None:
            session.transport.close()
        self._fail_all(DisconnectedError("the client was closed"))

    # -- what the session reports -----------------------------------------------------------------------------------

    def received(self, size: int) -> None:
        session = self.session
        assert session is not None
        try:
            answers = session.connection.received(size)
        except (ProtocolError, ClientError) as error:
            self._break(ClientError(f"{self.address}: {error}"))
            return
        if session.connection.ready:
            self._backoff.reset()
        for answer in answers:
            self._in_flight.pop(answer.correlation_id).finish(answer.message)
        if self.session is session:
            self._send_waiting(session)

    def drained(self) -> None:
        """Everything written has left, which is all there is to know about a call without an answer."""
        leaving, self._leaving = self._leaving, []
        for call in leaving:
            call.finish(None)

    def closed(self, reason: str) -> None:
        was_ready = self.ready
        self.session = None
        self._rest()
        if was_ready:
            self._fail_all(DisconnectedError(f"{self.address} closed the connection ({reason})"))
        else:
            self._fail_all(UnreachableError(f"{self.address} closed the connection before it was ready ({reason})"))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self._opening:
            self._opening = True
            self._network.connect(self.address.host, self.address.port, self._connected, self._not_connected)

    def _connected(self, transport: Transport) -> _Session:
        self._opening = False
        session = _Session(self, transport, self._client_id)
        if self._closed:
            self._clock.call_soon(transport.close)
            return session
        self.session = session
        session.connection.start()
        # The transport learns its receiver from what this returns, so the first bytes go out right after.
        self._clock.call_soon(session.flush)
        return session

    def _not_connected(self, error: Exception) -> None:
        self._opening = False
        self._rest()
        self._fail_all(UnreachableError(f"{self.address} is not reachable: {error}"))

    def _rest(self) -> None:
        """New calls wait until this is over instead of knocking again at once."""
        if not self._resting:
            self._resting = True
            self._clock.call_later(self._backoff.next_ms(), self._rested)

    def _rested(self) -> None:
        self._resting = False
        if self._waiting and self.session is None:
            self._open()

    def _send_waiting(self, session: _Session) -> None:
        connection = session.connection
        while self._waiting and connection.ready:
            call = self._waiting.popleft()
            try:
                call.correlation_id = connection.send(call.request, answered=call.answered, versions=call.versions)
            except ClientError as error:
                call.finish(error)
                continue
            if call.answered:
                self._in_flight[call.correlation_id] = call
            else:
                self._leaving.append(call)
        session.flush()
        if self._leaving and not session.transport.queued_bytes:
            self.drained()

    def _expire(self, call: Call, timeout_ms: float) -> None:
        if call.result.done:
            return
        if call in self._waiting:
            self._waiting.remove(call)
        self._in_flight.pop(call.correlation_id, None)
        call.finish(TimedOutError(f"{self.address} did not answer within {timeout_ms / 1000:g} s"))
        if self.session is not None:
            self._break(DisconnectedError(f"{self.address} stopped answering"))

    def _break(self, error: ClientError) -> None:
        """Gives the connection up. What was not sent yet fails too: whoever asked decides about trying again."""
        session, self.session = self.session, None
        if session is not None:
            session.transport.abort()
        self._rest()
        self._fail_all(error)

    def _fail_all(self, error: ClientError) -> None:
        calls = [*self._in_flight.values(), *self._leaving, *self._waiting]
        self._in_flight.clear()
        self._leaving.clear()
        self._waiting.clear()
        for call in calls:
            call.finish(error)
