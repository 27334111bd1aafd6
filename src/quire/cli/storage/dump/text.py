"""Prints facts for people: columns with titles, and records indented below their batch.

Text that could be mistaken for null, for hexadecimal bytes or for the end of a value is in quotes; bytes that are not
text are in hexadecimal. Times are ISO 8601 in UTC.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from quire.cli.records.record_format import iso_time
from quire.cli.storage.dump.facts import Fact
from quire.cli.storage.dump.json_lines import shown_fields
from quire.console.output import count
from quire.console.terminal import to_compact_json, to_json

MAX_SHOWN = 1000
"""Characters that are shown of one key or value; JSON has all of them."""

_TIME_WIDTH = 24


class Column(NamedTuple):
    title: str
    width: int
    """Negative: aligned to the left."""
    cell: Callable[[dict[str, Any]], object]

    def shown(self, content: object) -> str:
        text = "-" if content is None else str(content)
        return text.rjust(self.width) if self.width > 0 else text.ljust(-self.width)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def _producer(batch: dict[str, Any]) -> str | None:
    return None if batch["producer_id"] is None else f"{batch['producer_id']}/{batch['producer_epoch']}"


def _sequences(batch: dict[str, Any]) -> str | None:
    return None if batch["base_sequence"] is None else _range(batch["base_sequence"], batch["last_sequence"])


def _notes(batch: dict[str, Any]) -> str:
    notes = list(batch["control"] or ())
    if batch["transactional"] and batch["control"] is None:
        notes.append("transactional")
    if batch["timestamp_type"] == "LogAppendTime":
        notes.append("log append time")
    if batch["delete_horizon"] is not None:
        notes.append(f"delete horizon {iso_time(batch['delete_horizon'])}")
    return ", ".join(notes)


_TABLES: dict[str, list[Column]] = {
    "batch": [
        Column("offsets", 15, lambda batch: _range(batch["base_offset"], batch["last_offset"])),
        Column("position", 10, lambda batch: batch["position"]),
        Column("size", 8, lambda batch: batch["size"]),
        Column("records", 7, lambda batch: batch["record_count"]),
        Column("codec", -6, lambda batch: batch["compression"]),
        Column("epoch", 5, lambda batch: batch["leader_epoch"]),
        Column("producer", -8, _producer),
        Column("sequence", -9, _sequences),
        Column("latest", -_TIME_WIDTH, lambda batch: iso_time(batch["max_timestamp"])),
        Column("", -1, _notes),
    ],
    "index_entry": [
        Column("offset", 15, lambda entry: entry["offset"]),
        Column("position", 10, lambda entry: entry["position"]),
    ],
    "time_index_entry": [
        Column("highest up to there", -_TIME_WIDTH, lambda entry: iso_time(entry["timestamp"])),
        Column("offset", 15, lambda entry: entry["offset"]),
    ],
    "aborted_transaction": [
        Column("producer", 10, lambda aborted: aborted["producer_id"]),
        Column("first", 10, lambda aborted: aborted["first_offset"]),
        Column("last", 10, lambda aborted: aborted["last_offset"]),
        Column("last stable", 11, lambda aborted: aborted["last_stable_offset"]),
    ],
    "producer": [
        Column("producer", 10, lambda entry: entry["producer_id"]),
        Column("epoch", 5, lambda entry: entry["epoch"]),
        Column("last sequence", 13, lambda entry: entry["last_sequence"]),
        Column("last offset", 11, lambda entry: entry["last_offset"]),
        Column("offsets before it", 17, lambda entry: entry["offset_delta"]),
        Column("open since", 10, lambda entry: _unless_negative(entry["current_txn_first_offset"])),
        Column("coordinator", 11, lambda entry: _unless_negative(entry["coordinator_epoch"])),
        Column("time", -_TIME_WIDTH, lambda entry: iso_time(entry["timestamp"])),
    ],
    "checkpoint_entry": [
        Column("offset", 15, lambda entry: entry["offset"]),
        Column("partition", -1, lambda entry: f"{entry['topic']}-{entry['partition']}"),
    ],
    "leader_epoch": [
        Column("epoch", 8, lambda entry: entry["epoch"]),
        Column("from offset", 15, lambda entry: entry["start_offset"]),
    ],
}


def _unless_negative(number: int) -> int | None:
    return None if number < 0 else number


class TextLines:
    """Turns facts into lines, and prints titles where a new kind of row begins."""

    def __init__(self) -> None:
        self._files = 0
        self._titled = ""

    def lines(self, path: str, fact: Fact) -> Iterator[str]:
        if fact.kind == "file":
            if self._files:
                yield ""
            self._files += 1
            self._titled = ""
            yield f"{path}  ({fact.fields['kind']}, {count(_number(fact.fields['size']), 'byte')})"
        elif fact.kind in _TABLES:
            columns = _TABLES[fact.kind]
            if self._titled != fact.kind:
                self._titled = fact.kind
                yield _row([column.shown(column.title.upper()) for column in columns])
            yield _row([column.shown(column.cell(fact.fields)) for column in columns])
        else:
            yield from _OTHERS[fact.kind](fact.fields)


def _row(cells: list[str]) -> str:
    return f"  {'  '.join(cells)}".rstrip()


def _record(record: dict[str, Any]) -> Iterator[str]:
    parts = [f"    | {record['offset']:>11}", iso_time(record["timestamp"])]
    if "record" in record:
        parts.append(record["record"])
        if "key" in record:
            parts += [_fields(record["key"]), "->"]
        parts.append("null" if record["value"] is None else _fields(record["value"]))
    else:
        parts += [f"key={readable(record['key'])}", f"value={readable(record['value'])}"]
    parts += [f"{header['name']}:{readable(header['value'])}" for header in record.get("headers", ())]
    if "not_decoded" in record:
        parts.append(f"(not decoded: {record['not_decoded']})")
    yield "  ".join(parts).rstrip()


def _fields(fields: dict[str, Any]) -> str:
    """The fields that are not null or empty; most kinds of records have many empty ones."""
    return " ".join(f"{name}={_field(name, value)}" for name, value in fields.items() if value not in (None, []))


def _field(name: str, value: object) -> str:
    if isinstance(value, int) and name.endswith(("timestamp", "timestamp_ms")):
        return iso_time(value)
    if isinstance(value, bytes | str) or value is None:
        return readable(value)
    return _compact(shown_fields({name: value}))


def _compact(named: dict[str, object]) -> str:
    (value,) = named.values()
    return to_compact_json(value)


def readable(content: bytes | str | None) -> str:
    if content is None:
        return "null"
    try:
        text = content.decode() if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        assert isinstance(content, bytes)
        return _cut(f"0x{content.hex()}")
    unmistakable = text.isprintable() and text == text.strip() and text not in ("", "null")
    if unmistakable and not text.startswith(("0x", '"')):
        return _cut(text)
    return _cut(to_json(text))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text)} characters)"


def _log_end(end: dict[str, Any]) -> Iterator[str]:
    offsets = "" if end["batches"] == 0 else f", offsets {_range(end['first_offset'], end['last_offset'])}"
    yield f"  {count(end['batches'], 'batch', 'batches')}, {count(end['records'], 'record')}{offsets}"


def _index_end(end: dict[str, Any]) -> Iterator[str]:
    parts = [count(end["entries"], "entry", "entries")]
    if end["unused_entries"]:
        parts.append(f"room for {end['unused_entries']:,} more")
    if end["compared_with_log"]:
        parts.append("compared with the log")
    yield f"  {', '.join(parts)}"


def _properties(fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        yield f"  {name} = {_field('', value)}"


def _problem(fields: dict[str, Any]) -> Iterator[str]:
    location = "" if fields["position"] is None else f" at position {fields['position']}"
    yield f"  PROBLEM{location}: {fields['reason']}"


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


_OTHERS: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "record": _record,
    "log_end": _log_end,
    "index_end": _index_end,
    "properties": _properties,
    "problem": _problem,
}
