"""From a request's bytes to its handler, and from the handler's answer to the bytes that go out.

The header is read by hand, the (API, version) looked up in a table that fills itself as clients use it, and everything
between two lookups is flat: decode, authorize and throttle points, handle, encode. Whatever goes wrong stays with this
one request: undecodable bytes close the connection, an unexpected exception becomes UNKNOWN_SERVER_ERROR.
"""

import logging
import struct
from collections.abc import Callable, Iterable
from importlib import import_module
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from quire.config.listeners import Listener
from quire.network.handler import CloseConnection, ConnectionInfo, EncodedResponse
from quire.node import answers
from quire.node.api import SERVED
from quire.node.api.api_versions import unsupported_version
from quire.node.context import ANONYMOUS, Context
from quire.node.refusals import Handle, Refusals
from quire.node.slices import SLICE_MS, TURN, Work, begin
from quire.pending import Pending
from quire.protocol import apis, codec
from quire.protocol.errors import ApiError, ErrorCode, ProtocolError
from quire.protocol.limits import HEADER_TAGS_MAX
from quire.protocol.tags import skip_tags
from quire.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.requests")

HEADER = struct.Struct(">hhih")
_HEADER_BYTES = HEADER.size
_read_header = HEADER.unpack_from
LARGE_BYTES = 64 * 1024
"""Decoding more than this may take milliseconds."""
API_VERSIONS = apis.api_key("ApiVersions")
_CHANGING = frozenset(apis.api_key(name) for name, served in SERVED.items() if served.changes)

Reply = EncodedResponse | Pending[EncodedResponse]


def changes_something(frame: memoryview) -> bool:
    """Whether a request is worth handling although no client waits for its answer now."""
    return int.from_bytes(frame[:2], "big", signed=True) in _CHANGING


class Route:
    """One (API, version): how its requests are read, handled, refused and answered."""

    __slots__ = (
        "answer",
        "changes",
        "decode",
        "decodes_in_turn",
        "flexible_header",
        "handle",
        "key",
        "name",
        "refuse",
        "version",
    )

    def __init__(self, key: int, version: int, *, controller: bool) -> None:
        self.key = key
        self.version = version
        self.name = apis.API_NAMES[key]
        self.flexible_header = apis.request_header_version(key, version) >= 2
        self.decode = codec.decoder(apis.request_class(key), version)
        self.answer = answers.writer(key, version)
        served = SERVED[self.name]
        self.changes = served.changes
        # What makes a Produce request large are its records, which are not decoded.
        self.decodes_in_turn = self.name != "Produce"
        name = served.controller_module if controller else None
        module = import_module(f"quire.node.api.{name or apis.module_name(self.name)}")
        self.handle: Handle = module.handle
        self.refuse: Callable[[Any, ApiError], Any] = module.refuse


class Routes:
    """The APIs of one kind of listener: a broker's or a controller's."""

    __slots__ = ("_refusals", "_routes", "controller")

    def __init__(self, refusals: Refusals, *, controller: bool) -> None:
        self.controller = controller
        self._refusals = refusals
        self._routes: dict[tuple[int, int], Route] = {}

    def find(self, key: int, version: int) -> Route | None:
        return self._routes.get((key, version)) or self._add(key, version)

    def _add(self, key: int, version: int) -> Route | None:
        served = SERVED.get(apis.API_NAMES.get(key, ""))
        if served is None or not served.oldest_on(controller=self.controller) <= version <= served.newest:
            return None
        if not (served.on_controller if self.controller else served.on_broker):
            return None
        route = self._routes[key, version] = Route(key, version, controller=self.controller)
        if self.controller and served.only_nodes_send_it_to_controllers:
            route.handle = self._refusals.watch(route.name, route.handle)
        return route


class Client:
    """The `state` of a connection: its last client id, and the requests that it may send."""

    __slots__ = ("context", "id", "routes")

    def __init__(self, client_id: bytes, context: Context, routes: Routes) -> None:
        self.id = client_id
        self.context = context
        self.routes = routes


class Dispatcher:
    """Answers the requests of all listeners; the server calls it with each frame."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._broker_routes = Routes(node.refusals, controller=False)
        self._controller_routes = Routes(node.refusals, controller=True)
        self._failures = ThrottledLog(log, node.clock)
        self._held: dict[str, dict[Pending[EncodedResponse], Callable[[], None]]] = {
            listener.name: {}
            for listener in node.config.topology.broker_listeners + node.config.topology.controller_listeners
        }
        """The requests that wait, by listener; a listener that answers is not in it."""

    def answer(self, listeners: Iterable[Listener]) -> None:
        """Starts to answer requests on these listeners, beginning with those that are waiting."""
        for listener in listeners:
            for answer in self._held.pop(listener.name, {}).values():
                answer()

    def controller_route(self, key: int, version: int) -> Route | None:
        """How a request is handled that reached this node's controller in an Envelope."""
        return self._controller_routes.find(key, version)

    def __call__(self, info: ConnectionInfo, frame: memoryview) -> Reply:
        if self._held and info.listener in self._held:
            return self._hold(info, bytes(frame))
        try:
            key, version, correlation_id, client_id_size = _read_header(frame)
        except struct.error:
            raise CloseConnection(f"a request of {len(frame)} bytes has no header") from None
        position = _HEADER_BYTES + client_id_size if client_id_size > 0 else _HEADER_BYTES
        client: Client | None = info.state
        if client is None or client.id != frame[_HEADER_BYTES:position]:
            client = info.state = self._introduce(info, bytes(frame[_HEADER_BYTES:position]))
        route = client.routes.find(key, version)
        if route is None:
            return self._unsupported(client, key, version, correlation_id)
        if len(frame) > LARGE_BYTES and route.decodes_in_turn:
            return self._in_turn(route, client.context, correlation_id, bytes(frame), position)
        try:
            if route.flexible_header:
                position = skip_tags(frame, position, HEADER_TAGS_MAX)
            # Bytes after the request are ignored, as Kafka does: librdkafka's Metadata v13 has three too many.
            request, _ = route.decode(frame, position)
        except ProtocolError as error:
            raise CloseConnection(f"{route.name} v{version} cannot be read: {error}") from None
        node = self._node
        context = client.context
        context.api_version = version
        throttle_ms = node.throttle.delay_ms(context, key, len(frame))
        try:
            if node.faults is not None:
                node.faults.fail(key, context.client_id)
            response = route.handle(node, context, request)
            if response.__class__ is GeneratorType:
                response = begin(response)
        except ApiError as error:
            response = route.refuse(request, error)
        except (CloseConnection, AssertionError):
            raise
        except Exception:
            response = self._failed(route, request)
        if response.__class__ is GeneratorType:
            reply = self._work(route, correlation_id, request, response, throttle_ms)
        elif not isinstance(response, Pending):
            reply = _answer(route, correlation_id, request, response, throttle_ms)
        elif response.done:
            reply = _answer(route, correlation_id, request, response.value, throttle_ms)
        else:
            reply = self._answer_late(route, correlation_id, request, response, throttle_ms)
        return reply if node.faults is None else self._delayed(reply, node.faults.delay_ms(key, context.client_id))

    def _work(self, route: Route, correlation_id: int, request: Any, work: Work[Any], throttle_ms: int) -> Reply:
        """Answers a request whose handler works in slices."""
        return self._run(route, self._answer_in_slices(route, correlation_id, request, work, throttle_ms))

    def _run(self, route: Route, work: Work[EncodedResponse]) -> Reply:
        """A request that changes something is finished even if its client has gone."""
        reply = self._node.slices.run(work, may_be_abandoned=not route.changes)
        return reply.then(_or_close) if isinstance(reply, Pending) else reply

    def _answer_in_slices(
        self, route: Route, correlation_id: int, request: Any, work: Work[Any], throttle_ms: int
    ) -> Work[EncodedResponse]:
        """Encodes the response in slices too, if it took long."""
        clock = self._node.clock
        started_ms = clock.monotonic_ms()
        try:
            response = yield from work
        except ApiError as error:
            response = route.refuse(request, error)
        except (CloseConnection, AssertionError):
            raise
        except Exception:
            response = self._failed(route, request)
        if isinstance(response, ApiError):
            response = route.refuse(request, response)
        if clock.monotonic_ms() - started_ms < SLICE_MS or not answers.may_be_sliced(route.key):
            return _answer(route, correlation_id, request, response, throttle_ms)
        if throttle_ms:
            response.throttle_time_ms = throttle_ms
        write = answers.sliced_writer(route.key, route.version)
        return (yield from write(response, correlation_id))

    def _in_turn(self, route: Route, context: Context, correlation_id: int, frame: bytes, position: int) -> Reply:
        """A large request: decoding it takes a time slice of its own, for which it waits."""
        reply = self._run(route, self._decode_and_handle(route, context, correlation_id, frame, position))
        faults = self._node.faults
        return reply if faults is None else self._delayed(reply, faults.delay_ms(route.key, context.client_id))

    def _decode_and_handle(
        self, route: Route, context: Context, correlation_id: int, frame: bytes, position: int
    ) -> Work[EncodedResponse]:
        node = self._node
        yield TURN
        context.api_version = route.version
        try:
            if route.flexible_header:
                position = skip_tags(frame, position, HEADER_TAGS_MAX)
            request, _ = route.decode(frame, position)
        except ProtocolError as error:
            return CloseConnection(f"{route.name} v{route.version} cannot be read: {error}")
        throttle_ms = node.throttle.delay_ms(context, route.key, len(frame))
        work = self._handle_in_slices(route, context, request)
        return (yield from self._answer_in_slices(route, correlation_id, request, work, throttle_ms))

    def _handle_in_slices(self, route: Route, context: Context, request: Any) -> Work[Any]:
        """A handler of any kind, as work."""
        node = self._node
        if node.faults is not None:
            node.faults.fail(route.key, context.client_id)
        response = route.handle(node, context, request)
        if response.__class__ is GeneratorType:
            return (yield from response)
        return (yield response) if isinstance(response, Pending) else response

    def _failed(self, route: Route, request: Any) -> Any:
        """The response to a request whose handler raised an unexpected exception."""
        kind = f"{route.name} failed unexpectedly"
        self._failures.exception("%s v%d failed unexpectedly", route.name, route.version, kind=kind)
        return route.refuse(request, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the node failed on this request"))

    def _hold(self, info: ConnectionInfo, frame: bytes) -> Pending[EncodedResponse]:
        """Keeps a request until its listener answers; a copy of its bytes, because the connection reuses its buffer."""
        pending: Pending[EncodedResponse] = Pending()
        held = self._held[info.listener]

        def forget() -> None:
            held.pop(pending, None)

        def answer() -> None:
            reply: Reply
            try:
                reply = self(info, memoryview(bytearray(frame)))
            except CloseConnection as error:
                reply = error
            except Exception:
                self._failures.exception("a request from %s that came early could not be handled", info.peer)
                reply = CloseConnection("its request could not be handled")
            if isinstance(reply, Pending):
                pending.on_abandoned = reply.abandon if reply.on_abandoned is not None else None
                reply.when_done(pending.complete)
            else:
                pending.complete(reply)

        if not changes_something(memoryview(frame)):
            pending.on_abandoned = forget
        held[pending] = answer
        return pending

    def _answer_late(
        self, route: Route, correlation_id: int, request: Any, pending: Pending[Any], throttle_ms: int
    ) -> Pending[EncodedResponse]:
        def answer(response: Any) -> EncodedResponse:
            # An error here must not reach the code that completes the request.
            try:
                return _answer(route, correlation_id, request, response, throttle_ms)
            except CloseConnection as error:
                return error
            except Exception:
                self._failures.exception("the answer to %s v%d cannot be written", route.name, route.version)
                return CloseConnection("its request could not be answered")

        return pending.then(answer)

    def _unsupported(self, client: Client, key: int, version: int, correlation_id: int) -> EncodedResponse:
        """A newer client sends ApiVersions in an unknown version: the response lists our versions, in version 0."""
        routes = client.routes
        if key != API_VERSIONS:
            raise CloseConnection(_why_unsupported(key, version, client.context.listener, routes.controller))
        route = routes.find(key, 0)
        assert route is not None
        return route.answer(unsupported_version(routes.controller), correlation_id)

    def _delayed(self, reply: Reply, delay_ms: int) -> Reply:
        if delay_ms <= 0:
            return reply
        late: Pending[EncodedResponse] = Pending()

        def complete_later(answer: EncodedResponse) -> None:
            self._node.clock.call_later(delay_ms, lambda: late.complete(answer))

        if isinstance(reply, Pending):
            reply.when_done(complete_later)
        else:
            complete_later(reply)
        return late

    def _introduce(self, info: ConnectionInfo, client_id: bytes) -> Client:
        """A client's first request on a connection, or its first under another name."""
        try:
            context = Context(info.listener, ANONYMOUS, client_id.decode(), info.peer, connection_id=info.connection_id)
        except UnicodeDecodeError:
            raise CloseConnection("the client id is not valid UTF-8") from None
        controller = self._node.is_controller_listener(info.listener)
        return Client(client_id, context, self._controller_routes if controller else self._broker_routes)


def _answer(route: Route, correlation_id: int, request: Any, response: Any, throttle_ms: int) -> EncodedResponse:
    """A handler's result as it is sent; None if there is no answer."""
    if response is None or isinstance(response, CloseConnection):
        return response
    if isinstance(response, ApiError):
        response = route.refuse(request, response)
    if throttle_ms:
        response.throttle_time_ms = throttle_ms
    return route.answer(response, correlation_id)


def _why_unsupported(key: int, version: int, listener: str, is_controllers: bool) -> str:
    name = apis.API_NAMES.get(key, f"API key {key}")
    served = SERVED.get(name)
    if served is None or (served.on_controller if is_controllers else served.on_broker):
        return f"{name} version {version} is not supported"
    if is_controllers:
        return f"{name} is not served on {listener}, a controller listener: connect to a listener of a broker"
    return (
        f"{name} is a request between nodes, and not served on {listener}, a listener for clients: send it to a "
        "controller listener (controller.listener.names)"
    )


def _or_close(reply: EncodedResponse | ApiError) -> EncodedResponse:
    """An answer that cannot be written is the only error that is left at this point."""
    return CloseConnection("its request could not be answered") if isinstance(reply, ApiError) else reply
