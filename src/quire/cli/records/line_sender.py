"""Turns lines into records for `quire produce`: a value, or KEY, separator, VALUE; a marker may stand for null."""

from collections.abc import Callable
from functools import partial

from quire.client.producer import Producer

Send = Callable[[list[bytes]], object]

SHOWN_CHARACTERS = 40


class BadLineError(ValueError):
    """A line that is not a record. The lines before it were sent."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number
        """Counted from 1, from the first of the lines given."""


def line_sender(
    producer: Producer,
    topic: str,
    key_separator: str | None,
    null_marker: str | None,
    headers: list[tuple[str, bytes | None]],
    partition: int | None,
) -> Send:
    """Queues lines as records; BadLineError at the first one without the separator."""
    if key_separator is None and null_marker is None:
        return partial(producer.send_values, topic, headers=headers, partition=partition)
    null = None if null_marker is None else null_marker.encode()
    separator = None if key_separator is None else key_separator.encode()

    def send(lines: list[bytes]) -> None:
        for index, line in enumerate(lines):
            key: bytes | None = None
            value: bytes | None = line
            if separator is not None:
                key, found, value = line.partition(separator)
                if not found:
                    raise BadLineError(index + 1, f"no {key_separator!r} after a key in {_shorten(line)}")
            producer.send(
                topic,
                None if value == null else value,
                key=None if key == null else key,
                headers=headers,
                partition=partition,
            )

    return send


def _shorten(line: bytes) -> str:
    text = line.decode(errors="replace")
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "...")
