"""A simulated client's connection: how long it waits for responses."""

from quire.protocol.codec import encode
from quire.protocol.messages.headers import ResponseHeader
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.seams import Transport
from simulator.clients.own_client import IgnoringReceiver
from simulator.clients.wire import Wire
from simulator.clock import SimClock
from simulator.life import Life
from simulator.network import SimNetwork
from simulator.random import SimRandom

TIMEOUT_MS = 1000.0


class SlowNode(IgnoringReceiver):
    """Answers a heartbeat when the test says so."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def answer(self) -> None:
        content = encode(ResponseHeader(correlation_id=1), 0) + encode(HeartbeatResponse(), 0)
        self._transport.write([len(content).to_bytes(4, "big") + content])


def _connected(clock: SimClock) -> tuple[Wire, SlowNode]:
    network = SimNetwork(clock, SimRandom(1))
    nodes: list[SlowNode] = []
    wires: list[Wire] = []

    def accept(transport: Transport) -> SlowNode:
        nodes.append(SlowNode(transport))
        return nodes[-1]

    def connected(transport: Transport) -> Wire:
        wires.append(Wire(clock, transport, "client", Life("node", 1), lambda: 0))
        return wires[-1]

    def failed(error: Exception) -> None:
        raise error

    network.host("node").listen("0.0.0.0", 9092, accept)
    network.host("client").connect("node", 9092, connected, failed)
    clock.run_until(lambda: bool(wires and nodes))
    return wires[0], nodes[0]


def test_a_request_without_an_answer_is_given_up_after_its_time() -> None:
    clock = SimClock()
    wire, _ = _connected(clock)
    wire.ask(HeartbeatRequest(), 0, TIMEOUT_MS)
    clock.run_for(TIMEOUT_MS - 1)
    assert wire.lost is None
    clock.run_for(1)
    assert wire.lost == "no answer within 1000 ms"


def test_a_second_copy_has_its_own_time_after_the_first_was_answered() -> None:
    clock = SimClock()
    wire, node = _connected(clock)
    first, second = wire.ask(HeartbeatRequest(), 0, TIMEOUT_MS, copies=2)
    clock.run_for(TIMEOUT_MS - 100)
    node.answer()
    clock.run_for(TIMEOUT_MS)
    assert (first.settled, second.settled, wire.lost) == (True, False, None)
    clock.run_for(TIMEOUT_MS)
    assert wire.lost == "no answer within 2000 ms"


def test_a_second_copy_gives_the_first_no_more_time() -> None:
    clock = SimClock()
    wire, _ = _connected(clock)
    wire.ask(HeartbeatRequest(), 0, TIMEOUT_MS, copies=2)
    clock.run_for(TIMEOUT_MS)
    assert wire.lost == "no answer within 1000 ms"
