"""Commands: requested changes of the stock, as JSON on `inventory-commands`, keyed by the command's id.

    {"id": "o-17", "kind": "order", "at_ms": 1767225600000, "lines": [{"item": "pen", "quantity": 3}, ...]}

A shipment adds its lines to the stock, an order removes them. A sender that repeats a command, because it got no
acknowledgement, uses the same id. Any other record is malformed, and the error says where.
"""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum

TEXT_LENGTH_MAX = 200
LINES_MAX = 1_000
QUANTITY_MAX = 1_000_000_000
COMMAND_BYTES_MAX = 1_000_000
"""A larger record is not parsed."""
MILLISECONDS_MAX = 253_402_300_799_999
"""The end of the year 9999, the last that all date libraries support."""


class Kind(StrEnum):
    SHIPMENT = "shipment"
    ORDER = "order"


@dataclass(slots=True, frozen=True)
class Line:
    item: str
    quantity: int


@dataclass(slots=True, frozen=True)
class Command:
    id: str
    kind: Kind
    lines: tuple[Line, ...]
    at_ms: int = 0

    @property
    def digest(self) -> bytes:
        """Equal for equal content, however it is written: a used id with another digest is a different command."""
        return hashlib.blake2b(encode_command(self), digest_size=8).digest()


class MalformedError(ValueError):
    """A record on the command topic that is not a command; the text says what is wrong with it."""


def encode_command(command: Command) -> bytes:
    lines = [{"item": line.item, "quantity": line.quantity} for line in command.lines]
    content = {"id": command.id, "kind": command.kind.value, "at_ms": command.at_ms, "lines": lines}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def decode_command(value: bytes | None) -> Command:
    """Decodes a record's value as a command, or raises MalformedError."""
    content = _object(value)
    command_id = _text(content, "id", "the command")
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in Kind.__members__.values():
        raise MalformedError(f'"kind" is {_shown(kind)}; it must be "shipment" or "order"')
    at_ms = content.get("at_ms", 0)
    if type(at_ms) is not int or not 0 <= at_ms <= MILLISECONDS_MAX:
        raise MalformedError(f'"at_ms" is {_shown(at_ms)}; it must be a time in milliseconds since 1970')
    lines = content.get("lines")
    if not isinstance(lines, list) or not 1 <= len(lines) <= LINES_MAX:
        raise MalformedError(f'"lines" must be a list of 1 to {LINES_MAX} lines')
    return Command(command_id, Kind(kind), tuple(_line(line, number) for number, line in enumerate(lines, 1)), at_ms)


def _object(value: bytes | None) -> dict[str, object]:
    if value is None:
        raise MalformedError("the record has no value")
    if len(value) > COMMAND_BYTES_MAX:
        raise MalformedError(f"the record has {len(value)} bytes; a command has at most {COMMAND_BYTES_MAX}")
    try:
        content = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"it is not JSON ({_shortened(str(error))})") from None
    if not isinstance(content, dict):
        raise MalformedError("it is JSON, but not an object")
    return content


def _line(line: object, number: int) -> Line:
    if not isinstance(line, dict):
        raise MalformedError(f"line {number} is {_shown(line)}; it must be an object")
    quantity = line.get("quantity")
    if type(quantity) is not int or not 1 <= quantity <= QUANTITY_MAX:
        raise MalformedError(f'"quantity" of line {number} is {_shown(quantity)}; it must be 1 to {QUANTITY_MAX}')
    return Line(_text(line, "item", f"line {number}"), quantity)


def _text(content: dict[str, object], name: str, where: str) -> str:
    text = content.get(name)
    if not isinstance(text, str) or not 1 <= len(text) <= TEXT_LENGTH_MAX or not is_unicode(text):
        raise MalformedError(
            f'"{name}" of {where} is {_shown(text)}; it must be a text of 1 to {TEXT_LENGTH_MAX} characters'
        )
    return text


def is_unicode(text: object) -> bool:
    """Whether the text can be encoded as UTF-8: JSON can also contain lone surrogates."""
    if type(text) is not str:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object) -> str:
    return "missing" if value is None else _shortened(repr(value))


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
