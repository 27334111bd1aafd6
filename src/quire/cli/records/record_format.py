"""Formats a record as text, as hexadecimal bytes, or as one line of JSON with all its fields."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime

from quire.client.offsets import TopicPartition
from quire.console.terminal import one_line_json, to_json
from quire.protocol.records import Record

Formatter = Callable[[TopicPartition, Record], bytes]


def text_formatter(*, key_separator: str | None, verbose: bool) -> Formatter:
    """The value, unchanged, on its own line; with the key before it if a separator is given."""
    separator = None if key_separator is None else key_separator.encode()

    def line(topic_partition: TopicPartition, record: Record) -> bytes:
        value = b"" if record.value is None else record.value
        parts = []
        if verbose:
            parts.append(f"{topic_partition.partition}\t{record.offset}\t{iso_time(record.timestamp)}\t".encode())
            headers = ",".join(f"{name}={_readable(content)}" for name, content in record.headers)
            parts.append(f"{headers or '-'}\t".encode())
        if separator is not None:
            parts += [b"" if record.key is None else record.key, separator]
        return b"".join([*parts, value, b"\n"])

    if separator is None and not verbose:
        return lambda topic_partition, record: (record.value or b"") + b"\n"
    return line


def hex_line(topic_partition: TopicPartition, record: Record) -> bytes:
    """Partition, offset, key and value in hexadecimal; `-` stands for null."""
    return (
        f"{topic_partition.partition}\t{record.offset}\t{_hex(record.key)}\t{_hex(record.value)}"
        + "".join(f"\t{name}={_hex(content)}" for name, content in record.headers)
        + "\n"
    ).encode()


def json_line(topic_partition: TopicPartition, record: Record) -> bytes:
    """One object. Bytes that are not UTF-8 are in `..._base64` instead."""
    shown = _before_value(topic_partition, record)
    _put(shown, "value", record.value)
    shown["headers"] = _headers(record)
    return to_json(shown).encode() + b"\n"


def json_line_with_json_value(topic_partition: TopicPartition, record: Record) -> bytes:
    """Like `json_line`, with a value that is JSON as it is, not as text."""
    value = json_text(record.value)
    if value is None:
        return json_line(topic_partition, record)
    # The text itself and not its meaning: decoding would round numbers and drop repeated names.
    before, after = to_json(_before_value(topic_partition, record)), to_json({"headers": _headers(record)})
    return f'{before[:-1]}, "value": {value}, {after[1:]}\n'.encode()


def _before_value(topic_partition: TopicPartition, record: Record) -> dict[str, object]:
    shown: dict[str, object] = {
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    _put(shown, "key", record.key)
    return shown


def json_text(value: bytes | None) -> str | None:
    """The value on one line; None if it is not JSON."""
    try:
        text = (value or b"").decode()
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return one_line_json(text.strip())


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON, although Python accepts it")


def iso_time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _headers(record: Record) -> list[dict[str, object]]:
    return [_header(name, content) for name, content in record.headers]


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
