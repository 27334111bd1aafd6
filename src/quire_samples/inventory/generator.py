"""Generates commands: shipments and orders, some of them sent twice, and a few malformed ones.

The same random numbers and name give the same commands, in the same order. Orders slightly exceed shipments, so the
stock stays near zero and some orders are refused. Called by `quire-samples inventory send` and by tests.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from quire_samples.inventory.commands import Command, Kind, Line, encode_command

REMEMBERED = 100
"""A duplicate repeats one of this many previous commands."""
BROKEN = (b"", b"{", b"not json at all", b"[1, 2]", b'{"id": "x", "kind": "gift", "lines": []}', b"\xff\xfe\x00")


@dataclass(slots=True, frozen=True)
class Mixture:
    """The share of each kind of record; the rest are orders."""

    items: int = 50
    shipments: float = 0.2
    duplicates: float = 0.01
    broken: float = 0.005


class Sent(NamedTuple):
    key: bytes
    value: bytes


class Dice(Protocol):
    """Random numbers, as from `random.Random`."""

    def random(self) -> float: ...


def generate(dice: Dice, name: str, mixture: Mixture, start_ms: int, step_ms: int) -> Iterator[Sent]:
    """Yields commands without end; `name` makes the ids of each run different."""
    recent: deque[Sent] = deque(maxlen=REMEMBERED)
    number = 0
    while True:
        chance = dice.random()
        if chance < mixture.broken:
            yield Sent(f"{name}-broken-{number}".encode(), BROKEN[_below(dice, len(BROKEN))])
        elif chance < mixture.broken + mixture.duplicates and recent:
            yield recent[_below(dice, len(recent))]
        else:
            command = _command(dice, f"{name}-{number:08d}", mixture, start_ms + number * step_ms)
            sent = Sent(command.id.encode(), encode_command(command))
            recent.append(sent)
            yield sent
        number += 1


def _command(dice: Dice, command_id: str, mixture: Mixture, at_ms: int) -> Command:
    if dice.random() < mixture.shipments:
        return Command(command_id, Kind.SHIPMENT, _lines(dice, mixture.items, most=3, smallest=10, largest=60), at_ms)
    return Command(command_id, Kind.ORDER, _lines(dice, mixture.items, most=5, smallest=1, largest=12), at_ms)


def _lines(dice: Dice, items: int, *, most: int, smallest: int, largest: int) -> tuple[Line, ...]:
    """Lines of different items: consecutive ones from a random start."""
    first = _below(dice, items)
    chosen = range(first, first + min(items, 1 + _below(dice, most)))
    spread = largest - smallest + 1
    return tuple(Line(f"item-{index % items:04d}", smallest + _below(dice, spread)) for index in chosen)


def _below(dice: Dice, limit: int) -> int:
    return int(dice.random() * limit)
