"""A probe says whether a process listens, and leaves no connection behind."""

import errno

import pytest

from quire.controller.broker_probe import PROBE_TIMEOUT_MS, ProbeOutcome, probe
from quire.seams import Receiver, Transport
from simulator.clock import SimClock
from simulator.network import SimNetwork
from simulator.random import SimRandom


class Silent:
    """A server that only records that a connection ended."""

    def __init__(self) -> None:
        self.has_ended = False
        self._room = memoryview(bytearray(8))

    def buffer(self) -> memoryview:
        return self._room

    def received(self, size: int) -> None: ...

    def drained(self) -> None: ...

    def closed(self, reason: str) -> None:
        self.has_ended = True


class World:
    def __init__(self) -> None:
        self.clock = SimClock()
        self.network = SimNetwork(self.clock, SimRandom(1))
        self.outcomes: list[ProbeOutcome] = []
        self.accepted: list[Silent] = []

    def listen(self) -> None:
        def accept(_transport: Transport) -> Receiver:
            self.accepted.append(Silent())
            return self.accepted[-1]

        self.network.host("broker").listen("broker", 9092, accept)

    def probe(self) -> None:
        probe("broker", 9092, self.outcomes.append, clock=self.clock, network=self.network.host("controller"))
        assert self.outcomes == []


@pytest.fixture
def world() -> World:
    return World()


def test_a_listener_accepts_and_the_connection_is_closed_again(world: World) -> None:
    world.listen()
    world.probe()
    world.clock.run_for(100)
    assert world.outcomes == [ProbeOutcome.ACCEPTED]
    assert [each.has_ended for each in world.accepted] == [True]
    assert world.network.connections("controller") == 0


def test_nothing_that_listens_is_a_refusal(world: World) -> None:
    world.probe()
    world.clock.run_for(100)
    assert world.outcomes == [ProbeOutcome.REFUSED]


def test_no_answer_in_time_says_nothing_even_if_one_comes_later(world: World) -> None:
    world.network.cut("controller", "broker")
    world.probe()
    world.clock.run_for(PROBE_TIMEOUT_MS + 1)
    assert world.outcomes == [ProbeOutcome.UNKNOWN]
    world.clock.run_for(60_000)
    assert world.outcomes == [ProbeOutcome.UNKNOWN]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (OSError(errno.ECONNREFUSED, "as the sockets report it"), ProbeOutcome.REFUSED),
        (OSError(errno.EHOSTUNREACH, "no route"), ProbeOutcome.UNKNOWN),
        (OSError(errno.ECONNRESET, "reset"), ProbeOutcome.UNKNOWN),
        (OSError("the host has no address"), ProbeOutcome.UNKNOWN),
    ],
)
def test_only_a_refusal_is_a_refusal(world: World, error: Exception, outcome: ProbeOutcome) -> None:
    class Failing:
        def connect(self, host: str, port: int, connected: object, failed: object) -> None:
            world.clock.call_soon(lambda: failed(error))  # type: ignore[operator]

    probe("broker", 9092, world.outcomes.append, clock=world.clock, network=Failing())
    world.clock.run_for(10)
    assert world.outcomes == [outcome]
