"""A node's requests to its own parts, as unreliable as those between machines.

A node's coordinators reach partitions, and each other, through its channel and their own logs (`StateLog`). Here a
request or its answer is delayed, so that others overtake it, or lost.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from quire.coordinators.runtime.channel import Channel
from quire.coordinators.runtime.state_log import Bounds, StateLog
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.schema import Message
from quire.seams import Buffer
from simulator.clock import HostClock
from simulator.fault_counts import Felt, unnoticed
from simulator.random import SimRandom

T = TypeVar("T")


LOST = None
"""In place of a delay: the message is lost."""


@dataclass(slots=True)
class OwnConditions:
    """The reliability of a node's own requests. By default they are executed and answered at once."""

    delay_chance: float = 0.0
    longest_delay_ms: float = 0.0
    loss_chance: float = 0.0
    felt: Felt = unnoticed
    """Called when one is delayed or lost."""
    passed: int = 0
    """The number of requests and answers so far."""
    fates: dict[int, float | None] = field(default_factory=dict)
    """Fixed outcomes of some of them, by number: a delay in milliseconds, or LOST."""


class Unreliable:
    """Passes requests and answers on, with these conditions."""

    def __init__(self, clock: HostClock, random: SimRandom, conditions: OwnConditions) -> None:
        self._clock = clock
        self._random = random
        self._conditions = conditions

    def pass_on(self, ask: Callable[[], Pending[T]]) -> Pending[T]:
        answer: Pending[T] = Pending()

        def arrive() -> None:
            ask().when_done(lambda value: self._travel(lambda: _complete(answer, value)))

        self._travel(arrive)
        return answer

    def _travel(self, arrive: Callable[[], None]) -> None:
        conditions = self._conditions
        conditions.passed += 1
        if conditions.passed in conditions.fates:
            delay_ms = conditions.fates[conditions.passed]
            if delay_ms is not LOST:
                self._clock.call_later(delay_ms, arrive)
            return
        if self._random.chance(conditions.loss_chance):
            conditions.felt()
            return
        if self._random.chance(conditions.delay_chance):
            conditions.felt()
            self._clock.call_later(self._random.between(0.0, conditions.longest_delay_ms), arrive)
        else:
            arrive()


def _complete(answer: Pending[T], value: T) -> None:
    answer.complete_once(value)


class UnreliableChannel:
    def __init__(self, channel: Channel, way: Unreliable) -> None:
        self._channel = channel
        self._way = way

    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        return self._way.pass_on(lambda: self._channel.send(node_id, request, version))


class UnreliableStateLog:
    def __init__(self, state_log: StateLog, way: Unreliable) -> None:
        self._log = state_log
        self._way = way

    def bounds(self) -> Pending[Bounds | ApiError]:
        return self._log.bounds()

    def read(self, offset: int) -> Pending[Buffer | ApiError]:
        return self._log.read(offset)

    def append(self, batch: bytearray, expected_offset: int) -> Pending[ApiError | None]:
        return self._way.pass_on(lambda: self._log.append(batch, expected_offset))
