"""The output of Apache Kafka's DumpLogSegments for a file, and Quire's in the same form.

DumpLogSegments prints `name: value name: value ...` on a line; keys and payloads of plain records as they are, those of
internal topics as JSON with Kafka's own field names.
"""

import json
import re
from pathlib import Path
from typing import Any

from quire.cli.storage.dump.contents import TRANSACTION_STATES
from quire.cli.storage.dump.facts import Fact
from quire.protocol.messages import group_records
from quire.storage.producers.producer_state import sequence_after

Line = dict[str, Any]

_RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) (?P<time_type>\w+): (?P<time>-?\d+) keySize: (?P<key_size>-?\d+) "
    r"valueSize: (?P<value_size>-?\d+) sequence: (?P<sequence>-?\d+) headerKeys: \[(?P<headers>[^]]*)\] ?(?P<rest>.*)"
)
_CONTROL_NAMES = {
    "LEADER_CHANGE": "LeaderChange",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
_CONTROL = re.compile(
    r"endTxnMarker: (?P<type>\w+) coordinatorEpoch: (?P<epoch>-?\d+)"
    rf"|(?P<name>{'|'.join(_CONTROL_NAMES.values())}):? (?P<value>{{.*}})"
)


def parse(text: str) -> dict[str, list[Line]]:
    """The facts about each file."""
    files: dict[str, list[Line]] = {}
    for line in text.splitlines():
        if line.startswith("== "):
            said = files.setdefault(line.removeprefix("== "), [])
        else:
            said.append(_parse_record(line) if line.startswith("|") else _parse_pairs(line))
    return files


def _parse_pairs(line: str) -> Line:
    words = line.replace(": ", " ").split()
    return dict(zip(words[::2], words[1::2], strict=True))


def _parse_record(line: str) -> Line:
    match = _RECORD.fullmatch(line)
    assert match, line
    said: Line = {
        "offset": match["offset"],
        match["time_type"]: match["time"],
        "headerKeys": match["headers"].split(",") if match["headers"] else [],
    }
    control = _CONTROL.fullmatch(match["rest"])
    if control and control["type"]:
        return said | {"control": control["type"], "value": {"coordinatorEpoch": int(control["epoch"])}}
    if control:
        return said | {"control": control["name"], "value": json.loads(control["value"])}
    has_key, has_value = match["key_size"] != "-1", match["value_size"] != "-1"
    key, value = None, match["rest"]
    if has_key:
        key, _, value = match["rest"].removeprefix("key: ").partition(" payload: ")
        # Plain text may contain any words; for records of coordinators, DumpLogSegments also prints removed fields.
        key = key if has_value or value == "<DELETE>" else match["rest"].removeprefix("key: ")
    else:
        value = value.removeprefix("payload: ")
    return said | {"key": _parse_content(key), "value": _parse_content(value) if has_value else None}


def _parse_content(content: str | None) -> object:
    if content is None or not content.startswith('{"'):
        return content
    return _without_members_own_bytes(json.loads(content))


def _without_members_own_bytes(said: Line) -> Line:
    """Metadata of classic members is bytes for one of the tools, and a structure for the other."""
    data = said.get("data")
    for member in data.get("members", ()) if isinstance(data, dict) else ():
        del member["subscription"], member["assignment"]
    return said


def in_kafkas_words(path: Path, fact: Fact) -> Line | None:
    """A fact of `quire.cli.storage.dump` in the form of `parse`; None for facts that DumpLogSegments does not print."""
    fields: dict[str, Any] = fact.fields
    if fact.kind == "batch":
        horizon = fields["delete_horizon"]
        return {
            "baseOffset": str(fields["base_offset"]),
            "lastOffset": str(fields["last_offset"]),
            "count": str(fields["record_count"]),
            "baseSequence": _or_minus_one(fields["base_sequence"]),
            "lastSequence": _or_minus_one(fields["last_sequence"]),
            "producerId": _or_minus_one(fields["producer_id"]),
            "producerEpoch": _or_minus_one(fields["producer_epoch"]),
            "partitionLeaderEpoch": str(fields["leader_epoch"]),
            "isTransactional": str(fields["transactional"]).lower(),
            "isControl": str(fields["control"] is not None).lower(),
            "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
            "position": str(fields["position"]),
            fields["timestamp_type"]: str(fields["max_timestamp"]),
            "size": str(fields["size"]),
            "magic": "2",
            "compresscodec": fields["compression"],
            "crc": str(fields["crc"]),
            "isvalid": "true",
        }
    if fact.kind == "record":
        return _record_in_kafkas_words(fields)
    if fact.kind == "producer":
        first = fields["current_txn_first_offset"]
        return {
            "producerId": str(fields["producer_id"]),
            "producerEpoch": str(fields["epoch"]),
            "coordinatorEpoch": str(fields["coordinator_epoch"]),
            "currentTxnFirstOffset": "OptionalLong.empty" if first < 0 else f"OptionalLong[{first}]",
            "lastTimestamp": str(fields["timestamp"]),
            "firstSequence": str(sequence_after(fields["last_sequence"], -fields["offset_delta"])),
            "lastSequence": str(fields["last_sequence"]),
            "lastOffset": str(fields["last_offset"]),
            "offsetDelta": str(fields["offset_delta"]),
            "timestamp": str(fields["timestamp"]),
        }
    if fact.kind == "aborted_transaction":
        return {"version": "0", **{_camel(name): str(value) for name, value in fields.items()}}
    if fact.kind in ("index_entry", "time_index_entry"):
        return {name: str(value) for name, value in fields.items()}
    return None


def _record_in_kafkas_words(fields: dict[str, Any]) -> Line:
    said: Line = {
        "offset": str(fields["offset"]),
        "CreateTime": str(fields["timestamp"]),
        "headerKeys": [header["name"] for header in fields.get("headers", ())],
    }
    name = fields.get("record")
    if name is None:
        return said | {"key": _as_text(fields["key"]), "value": _as_text(fields["value"])}
    if name.isupper():
        return said | {"control": _CONTROL_NAMES.get(name, name), "value": _with_camels(fields["value"])}
    if "key" not in fields:
        type_name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
        value = {"type": type_name, "version": fields["version"], "data": _with_camels(fields["value"])}
        return said | {"key": None, "value": value}
    key = {"type": _KEY_NUMBERS[name], "data": _with_camels(fields["key"])}
    if fields["value"] is None:
        return said | {"key": key, "value": None}
    data = _with_camels(fields["value"])
    if "transactionStatus" in data:
        data["transactionStatus"] = TRANSACTION_STATES.index(data["transactionStatus"])
    value = _without_members_own_bytes({"version": str(fields["version"]), "data": data})
    return said | {"key": key, "value": value}


_KEY_NUMBERS = {key.__name__.removesuffix("Key"): str(number) for number, key in group_records.KEY_TYPES.items()}
_KEY_NUMBERS["TransactionLog"] = "0"


def _with_camels(value: Any) -> Any:
    if isinstance(value, dict):
        return {_camel(name): _with_camels(each) for name, each in value.items()}
    return [_with_camels(each) for each in value] if isinstance(value, list) else value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _as_text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()


def _or_minus_one(number: int | None) -> str:
    return str(-1 if number is None else number)
