"""The results of commands: an event for each line that changed the stock, or one refusal for the whole command.

Events are written to `inventory-events`, keyed by item. The topic is compacted, so each event also has the new level:
the last event of an item is enough to know its stock. `sequence` counts the events of an item from 1 without gaps, so a
reader of the whole history can prove that it is complete. `line` of `lines` is the part of the command.

Refusals have their own topic, `inventory-refusals`, keyed by command id and never compacted. As events without a change
they would need an item, would be compacted away, and every reader that adds up events would have to skip them.

Both contain the partition and offset of their command, so it can be checked that every command led to all its events or
to one refusal.
"""

import json
from dataclasses import dataclass
from enum import StrEnum

from quire_samples.inventory.commands import Kind, is_unicode

QUOTE_LENGTH_MAX = 1_000


@dataclass(slots=True, frozen=True)
class Source:
    """The position of a command on the command topic."""

    partition: int
    offset: int


@dataclass(slots=True, frozen=True)
class StockEvent:
    item: str
    sequence: int
    change: int
    level: int
    kind: Kind
    command: str
    line: int
    lines: int
    source: Source
    at_ms: int = 0


class Reason(StrEnum):
    INSUFFICIENT = "insufficient"  # an item would go below zero
    EXCESSIVE = "excessive"  # an item would go above what numbers can hold everywhere
    DUPLICATE = "duplicate"  # the same command has been decided before
    ID_REUSED = "id-reused"  # another command had this id
    MALFORMED = "malformed"  # not a command at all


@dataclass(slots=True, frozen=True)
class Refusal:
    reason: Reason
    detail: str
    source: Source
    command: str | None = None
    kind: Kind | None = None
    at_ms: int = 0
    quote: str | None = None
    """The beginning of a malformed record, as text."""

    @property
    def key(self) -> str:
        return self.command or f"{self.source.partition}@{self.source.offset}"


class UnreadableEventError(ValueError):
    """A record on the event or the refusal topic that no processor wrote."""


def encode_event(event: StockEvent) -> bytes:
    content = {
        "item": event.item,
        "sequence": event.sequence,
        "change": event.change,
        "level": event.level,
        "kind": event.kind.value,
        "command": event.command,
        "line": event.line,
        "lines": event.lines,
        "at_ms": event.at_ms,
        "source_partition": event.source.partition,
        "source_offset": event.source.offset,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def decode_event(value: bytes | None) -> StockEvent:
    try:
        content = json.loads(value or b"")
        event = StockEvent(
            item=content["item"],
            sequence=content["sequence"],
            change=content["change"],
            level=content["level"],
            kind=Kind(content["kind"]),
            command=content["command"],
            line=content["line"],
            lines=content["lines"],
            source=Source(content["source_partition"], content["source_offset"]),
            at_ms=content["at_ms"],
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableEventError(f"it is not an inventory event ({type(error).__name__}: {error})") from None
    numbers = (event.sequence, event.change, event.level, event.line, event.lines, event.at_ms)
    source = (event.source.partition, event.source.offset)
    if any(type(number) is not int for number in numbers + source) or event.sequence < 1 or event.level < 0:
        raise UnreadableEventError("it is not an inventory event (its numbers are not those of one)")
    if not is_unicode(event.item) or not is_unicode(event.command):
        raise UnreadableEventError("it is not an inventory event (its item or its command has no name)")
    return event


def encode_refusal(refusal: Refusal) -> bytes:
    content = {
        "reason": refusal.reason.value,
        "detail": refusal.detail,
        "command": refusal.command,
        "kind": refusal.kind.value if refusal.kind is not None else None,
        "at_ms": refusal.at_ms,
        "source_partition": refusal.source.partition,
        "source_offset": refusal.source.offset,
        "quote": refusal.quote,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def decode_refusal_source(value: bytes | None) -> Source:
    """Which command was refused; the rest of a refusal is for people."""
    try:
        content = json.loads(value or b"")
        source = Source(content["source_partition"], content["source_offset"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableEventError(f"it is not a refusal ({type(error).__name__}: {error})") from None
    if type(source.partition) is not int or type(source.offset) is not int:
        raise UnreadableEventError("it is not a refusal (its source is not a partition and an offset)")
    return source


def quote(value: bytes | None) -> str | None:
    """The beginning of a malformed record, for the person who investigates it."""
    return None if value is None else value[:QUOTE_LENGTH_MAX].decode(errors="backslashreplace")
