"""Dead letters: records that a pipeline could not process, on their own topic, with the reason in their headers.

A record of `orders` that breaks a rule is written to `orders.dlq` with its key, value and headers, and the headers
below. A record that is sent back carries the number of its attempt; if it fails again, its dead letter has that number.
Pure, and without Spark: `quire dlq` reads these headers too.
"""

from collections.abc import Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]

SUFFIX = ".dlq"
PREFIX = "dlq."
ERROR = "dlq.error"
TOPIC = "dlq.topic"
PARTITION = "dlq.partition"
OFFSET = "dlq.offset"
ATTEMPT = "dlq.attempt"
FIRST_ATTEMPT = 1
DIGITS_MAX = 18
"""These numbers have 64 bits, but any client can write longer ones."""
SHOWN_LENGTH_MAX = 40


class NotADeadLetterError(Exception):
    """A record without the headers of a dead letter; the text says which one is missing or unreadable."""


class DeadLetter(NamedTuple):
    """The reason for a dead letter, and the origin of its record."""

    error: str
    topic: str
    partition: int
    offset: int
    attempt: int


def dead_letter_topic(topic: str) -> str:
    return topic + SUFFIX


def read_headers(headers: Headers) -> DeadLetter:
    """Reads the headers of a dead letter; of two with the same name the last counts."""
    found = dict(headers)
    return DeadLetter(
        _text(found, ERROR), _text(found, TOPIC), _number(found, PARTITION), _number(found, OFFSET), attempt(headers)
    )


def attempt(headers: Headers) -> int:
    """The number of a record's attempt: 1 unless it was sent back."""
    found = dict(headers)
    return _number(found, ATTEMPT) if ATTEMPT in found else FIRST_ATTEMPT


def headers_to_send_back(headers: Headers) -> list[tuple[str, bytes | None]]:
    """The headers of the original record, with the number of the next attempt."""
    own = [(name, value) for name, value in headers if not name.startswith(PREFIX)]
    return [*own, (ATTEMPT, b"%d" % (attempt(headers) + 1))]


def _text(headers: dict[str, bytes | None], name: str) -> str:
    value = headers.get(name)
    if value is None:
        raise NotADeadLetterError(f"it has no header {name}")
    return value.decode(errors="replace")


def _number(headers: dict[str, bytes | None], name: str) -> int:
    text = _text(headers, name)
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise NotADeadLetterError(f"its header {name} is not a number: {text[:SHOWN_LENGTH_MAX]!r}")
    return int(text)
