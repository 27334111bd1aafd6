"""A connection that reconnects: calls wait until it is ready, fail when it is lost, and reconnecting backs off.

A call has exactly one result: the broker's response, or the reason why there is none. A call that times out closes the
connection, because all responses after it would be late too. `Cluster` keeps one link per broker address.
"""

from collections import deque
from typing import cast

from quire.address import Address
from quire.client.backoff import Backoff
from quire.client.connection import Connection, CorrelatedResponse, Versions
from quire.client.errors import ClientError, DisconnectedError, TimedOutError, UnreachableError, UnsupportedError
from quire.client.wrong_server import WrongServerError, controllers_port
from quire.pending import Pending
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from quire.protocol.messages.metadata import MetadataRequest
from quire.protocol.schema import Message
from quire.seams import Clock, Connector, Random, Timer, Transport

NODE_BACKOFF_MS = (20.0, 200.0)
"""The shortest and longest wait of a node before it reconnects to another node: short, because elections wait for
it."""

CallResult = Message | Exception | None  # None: the request was sent, and has no response


class Call:
    """One request and its result; `answered` is false if there is no response (Produce with acks=0)."""

    __slots__ = ("answered", "correlation_id", "request", "result", "timer", "versions")

    def __init__(self, request: Message, answered: bool, versions: Versions | None) -> None:
        self.request = request
        self.answered = answered
        self.versions = versions
        self.result: Pending[CallResult] = Pending()
        self.timer: Timer | None = None
        self.correlation_id = -1

    def finish(self, outcome: CallResult) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.result.complete_once(outcome)


class _Session:
    """One transport and its connection. Events of a session that the link has replaced are ignored."""

    __slots__ = ("asks_for_brokers", "connection", "link", "ready", "transport")

    def __init__(self, link: "Link", transport: Transport, client_id: str) -> None:
        self.link = link
        self.transport = transport
        self.connection = Connection(client_id)
        self.ready = False
        """Whether it is known that a broker answers."""
        self.asks_for_brokers = False
        """Whether it is a controller, which was asked for the addresses that clients use."""

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
    def __init__(
        self,
        address: Address,
        client_id: str,
        clock: Clock,
        network: Connector,
        random: Random,
        *,
        between_nodes: bool = False,
    ) -> None:
        """Nodes set `between_nodes`: they talk to controllers. A client that reaches one is at the wrong port."""
        self.address = address
        self._between_nodes = between_nodes
        self.session: _Session | None = None
        self._client_id = client_id
        self._clock = clock
        self._network = network
        self._backoff = Backoff(random, *NODE_BACKOFF_MS) if between_nodes else Backoff(random)
        self._opening = False
        self._resting = False
        self._closed = False
        self._waiting: deque[Call] = deque()
        self._leaving: list[Call] = []
        self._in_flight: dict[int, Call] = {}

    @property
    def ready(self) -> bool:
        return self.session is not None and self.session.ready

    @property
    def resting(self) -> bool:
        """Whether connecting has failed, and a call would have to wait for the back-off."""
        return self._resting

    @property
    def load(self) -> int:
        return len(self._waiting) + len(self._in_flight)

    def call(
        self, request: Message, timeout_ms: float, *, answered: bool = True, versions: Versions | None = None
    ) -> Pending[CallResult]:
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

    # --- The session's side

    def received(self, size: int) -> None:
        session = self.session
        assert session is not None
        try:
            answers = session.connection.received(size)
        except WrongServerError as error:
            self._break(WrongServerError(f"{self.address} {error}"))
            return
        except (ProtocolError, ClientError) as error:
            self._break(ClientError(f"{self.address}: {error}"))
            return
        if not session.ready:
            self._greet(session, answers)
            return
        for answer in answers:
            self._in_flight.pop(answer.correlation_id).finish(answer.message)
        if self.session is session:
            self._send_waiting(session)

    def _greet(self, session: _Session, answers: list[CorrelatedResponse]) -> None:
        """Lets calls begin once the versions are known, or refuses a controller, which knows where the brokers are."""
        connection = session.connection
        if session.asks_for_brokers:
            if answers:
                response = cast(DescribeClusterResponse, answers[0].message)
                self._refuse_controller([Address(broker.host, broker.port) for broker in response.brokers])
        elif connection.ready and not self._between_nodes and MetadataRequest.API_KEY not in connection.versions:
            session.asks_for_brokers = True
            try:
                connection.send(DescribeClusterRequest())
            except UnsupportedError:
                self._refuse_controller([])
            else:
                session.flush()
        elif connection.ready:
            session.ready = True
            self._backoff.reset()
            self._send_waiting(session)
        else:
            session.flush()

    def _refuse_controller(self, brokers: list[Address]) -> None:
        self._break(WrongServerError(f"{self.address} {controllers_port(brokers)}"))

    def drained(self) -> None:
        """Everything that was written is sent: calls without a response are done."""
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
            self._fail_all(
                UnreachableError(
                    f"{self.address} closed the connection before it was ready ({reason}): "
                    "it stops, expects TLS or is not a Kafka broker"
                )
            )

    # --- Connecting and sending

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
        # The transport gets its receiver from the return value, so the first bytes are sent after that.
        self._clock.call_soon(session.flush)
        return session

    def _not_connected(self, error: Exception) -> None:
        self._opening = False
        self._rest()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        self._fail_all(UnreachableError(f"{self.address} is not reachable: {reason}"))

    def _rest(self) -> None:
        """Makes new calls wait for the back-off, so that they do not reconnect at once."""
        if not self._resting:
            self._resting = True
            self._clock.call_later(self._backoff.next_ms(), self._rested)

    def _rested(self) -> None:
        self._resting = False
        if self._waiting and self.session is None:
            self._open()

    def _send_waiting(self, session: _Session) -> None:
        connection = session.connection
        while self._waiting and session.ready:
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
        call.finish(TimedOutError(f"{self.address} did not respond within {timeout_ms / 1000:g} s"))
        if self.session is not None:
            self._break(DisconnectedError(f"{self.address} stopped responding"))

    def _break(self, error: ClientError) -> None:
        """Closes the connection. Calls that were not sent yet fail too: the caller decides whether to retry."""
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
