"""The stock: decides what a command does; it is the sum of all events.

Guarantees: no level goes below zero; a command is executed or refused as a whole; the events of an item are numbered
1, 2, 3 and so on without a gap; `fold` of the events that `decide` returned gives the same stock again. Called by the
processor, which writes the results, and by readers that rebuild the stock from events.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from quire.client.errors import ClientError
from quire_samples.inventory.commands import Command, Kind, MalformedError, decode_command
from quire_samples.inventory.events import Reason, Refusal, Source, StockEvent, quote
from quire_samples.inventory.seen import Seen

LEVEL_MAX = 2**53 - 1
"""Up to this number, JSON readers with floating point are exact too."""


@dataclass(slots=True, frozen=True)
class Level:
    """The current level of an item, and its number of events."""

    level: int = 0
    sequence: int = 0


EMPTY = Level()


class OutOfOrderError(ClientError):
    """An event that does not follow from the one before it."""


class Stock:
    __slots__ = ("levels", "seen")

    def __init__(self, seen: Seen | None = None) -> None:
        self.levels: dict[str, Level] = {}
        self.seen = seen if seen is not None else Seen()

    def decide(self, value: bytes | None, source: Source) -> list[StockEvent] | Refusal:
        """Decides a record of the command topic, and changes the stock as if the result were already written."""
        try:
            command = decode_command(value)
        except MalformedError as error:
            return Refusal(Reason.MALFORMED, str(error), source, quote=quote(value))
        outcome = self._repeated(command, source) or self._carry_out(command, source)
        self.seen.add(command, source)
        return outcome

    def see(self, value: bytes | None, source: Source) -> str | None:
        """Marks a record that a previous processor has decided as seen; changes nothing else.

        Returns the command's id, if it is a command.
        """
        try:
            command = decode_command(value)
        except MalformedError:
            return None
        self.seen.add(command, source)
        return command.id

    def restore(self, event: StockEvent) -> None:
        """Applies an event of a compacted topic, in which earlier events may be missing."""
        known = self.levels.get(event.item, EMPTY)
        if event.sequence <= known.sequence:
            raise OutOfOrderError(
                f"event {event.sequence} of {event.item} comes after event {known.sequence}, which it should precede"
            )
        self.levels[event.item] = Level(event.level, event.sequence)

    def _repeated(self, command: Command, source: Source) -> Refusal | None:
        before = self.seen.find(command.id, source)
        if before is None:
            return None
        offset, digest = before
        if digest == command.digest:
            return _refuse(command, source, Reason.DUPLICATE, f"the same command was decided at offset {offset}")
        return _refuse(
            command, source, Reason.ID_REUSED, f"another command with this id was decided at offset {offset}"
        )

    def _carry_out(self, command: Command, source: Source) -> list[StockEvent] | Refusal:
        sign = 1 if command.kind is Kind.SHIPMENT else -1
        changed: dict[str, Level] = {}
        events: list[StockEvent] = []
        for number, line in enumerate(command.lines, 1):
            now = changed.get(line.item) or self.levels.get(line.item, EMPTY)
            change = sign * line.quantity
            level = Level(now.level + change, now.sequence + 1)
            if level.level < 0:
                detail = f"{line.quantity} of {line.item} were ordered, but the stock is {now.level}"
                return _refuse(command, source, Reason.INSUFFICIENT, detail)
            if level.level > LEVEL_MAX:
                detail = f"{line.quantity} more of {line.item} would be more than {LEVEL_MAX}"
                return _refuse(command, source, Reason.EXCESSIVE, detail)
            changed[line.item] = level
            events.append(
                StockEvent(
                    item=line.item,
                    sequence=level.sequence,
                    change=change,
                    level=level.level,
                    kind=command.kind,
                    command=command.id,
                    line=number,
                    lines=len(command.lines),
                    source=source,
                    at_ms=command.at_ms,
                )
            )
        self.levels.update(changed)
        return events


def fold(events: Iterable[StockEvent]) -> dict[str, Level]:
    """The stock after a whole history; raises OutOfOrderError if the history has gaps or does not add up."""
    levels: dict[str, Level] = {}
    for event in events:
        before = levels.get(event.item, EMPTY)
        if event.sequence != before.sequence + 1:
            raise OutOfOrderError(f"after event {before.sequence} of {event.item} comes event {event.sequence}")
        if event.level != before.level + event.change or event.level < 0:
            raise OutOfOrderError(
                f"event {event.sequence} of {event.item} makes {event.level} out of {before.level} and {event.change:+}"
            )
        levels[event.item] = Level(event.level, event.sequence)
    return levels


def _refuse(command: Command, source: Source, reason: Reason, detail: str) -> Refusal:
    return Refusal(reason, detail, source, command.id, command.kind, command.at_ms)
