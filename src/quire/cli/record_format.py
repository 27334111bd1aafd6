"""How a record is printed: its text, its bytes in hex, or one line of JSON with everything there is to know."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime

from quire.cli.terminal import to_json
from quire.client.offsets import TopicPartition
from quire.protocol.records import Record

Formatter = Callable[[TopicPartition, Record], bytes]


def text_formatter(*, key_separator: str | None, verbose: bool) -> Formatter:
    """The value as it came, on a line of its own; with the key before it if a separator is given."""
    separator = None if key_separator is None else key_separator.encode()

    def line(place: TopicPartition, record: Record) -> bytes:
        value = b"" if record.value is None else record.value
        parts = []
        if verbose:
            parts.append(f"{place.partition}\t{record.offset}\t{iso_time(record.timestamp)}\t".encode())
            headers = ",".join(f"{name}={_readable(content)}" for name, content in record.headers)
            parts.append(f"{headers or '-'}\t".encode())
        if separator is not None:
            parts += [b"" if record.key is None else record.key, separator]
        return b"".join([*parts, value, b"\n"])

    if separator is None and not verbose:
        return lambda place, record: (record.value or b"") + b"\n"
    return line


def hex_line(place: TopicPartition, record: Record) -> bytes:
    """Partition, offset, key and value in hexadecimal; `-` stands for null."""
    return (
        f"{place.partition}\t{record.offset}\t{_hex(record.key)}\t{_hex(record.value)}"
        + "".join(f"\t{name}={_hex(content)}" for name, content in record.headers)
        + "\n"
    ).encode()


def json_line(place: TopicPartition, record: Record) -> bytes:
    """One object. Bytes that are not UTF-8 stand under `..._base64` instead."""
    shown: dict[str, object] = {
        "topic": place.topic,
        "partition": place.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    _put(shown, "key", record.key)
    _put(shown, "value", record.value)
    shown["headers"] = [_header(name, content) for name, content in record.headers]
    return to_json(shown).encode() + b"\n"


def iso_time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _header(name: str, content: bytes | None) -> dict[str, object]:
    shown: dict[str, object] = {"name": name}
    _put(shown, "value", content)
    return shown


def _put(shown: dict[str, object], name: str, content: bytes | None) -> None:
    try:
        shown[name] = None if content is None else content.decode()
    except UnicodeDecodeError:
        assert content is not None
        shown[f"{name}_base64"] = base64.b64encode(content).decode()


def _hex(content: bytes | None) -> str:
    return "-" if content is None else content.hex()


def _readable(content: bytes | None) -> str:
    return "null" if content is None else content.decode(errors="replace")
