"""Decodes the records of internal logs: offsets, transactions, metadata and control records.

The fields of a decoded record keep the names that they have in its class. Ids are shown in their usual text form, and
numbers that stand for a name are shown as the name. A record that cannot be decoded is shown as bytes, with the reason.
"""

from collections.abc import Callable

from quire.cli.storage.dump.folders import Contents
from quire.coordinators.runtime.record import RecordTypes, UnknownRecordError
from quire.coordinators.transaction.transaction_state import NAMES, TransactionState
from quire.protocol import uuids, varints
from quire.protocol.codec import decode, decoder
from quire.protocol.errors import ProtocolError
from quire.protocol.messages import control_records
from quire.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from quire.protocol.records import ControlRecordType, Record
from quire.protocol.schema import Message, Struct, default_value
from quire.raft.errors import MetadataLogError
from quire.raft.record_frame import decode_frame

Fields = dict[str, object]
Decoder = Callable[[Record], Fields]

_CONTROL_VALUES: dict[int, type[Message]] = {
    ControlRecordType.ABORT: control_records.EndTxnMarker,
    ControlRecordType.COMMIT: control_records.EndTxnMarker,
    ControlRecordType.LEADER_CHANGE: control_records.LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: control_records.SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: control_records.SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: control_records.KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: control_records.VotersRecord,
}

TRANSACTION_STATES = tuple(NAMES[state] for state in TransactionState)
"""The names by number, as in responses."""
_NAMES = {("TransactionLogValue", "transaction_status"): TRANSACTION_STATES}


def decoder_of(contents: Contents) -> Decoder:
    """Returns a function from a record to its fields: `key`, `value` and, if it has a type, `record`."""
    if contents is Contents.PLAIN:
        return _plain
    if contents is Contents.METADATA:
        return _guarded(_metadata)
    # Imported only if needed: these are many classes.
    if contents is Contents.OFFSETS:
        from quire.protocol.messages import group_records

        return _guarded(_group(_keyed(group_records.KEY_TYPES, group_records.VALUE_TYPES)))
    if contents is Contents.SHARES:
        from quire.protocol.messages import share_records

        return _guarded(_keyed(share_records.KEY_TYPES, share_records.VALUE_TYPES))
    from quire.protocol.messages import transaction_records

    return _guarded(_keyed(transaction_records.KEY_TYPES, transaction_records.VALUE_TYPES))


def decode_control(record: Record) -> Fields:
    return _guarded(_control)(record)


def _plain(record: Record) -> Fields:
    return {"key": record.key, "value": record.value}


def _guarded(decoded: Decoder) -> Decoder:
    def guarded(record: Record) -> Fields:
        try:
            return decoded(record)
        except (ProtocolError, MetadataLogError, ValueError, IndexError) as error:
            return {**_plain(record), "not_decoded": str(error)}
        except UnknownRecordError as error:
            return {**_plain(record), "not_decoded": f"{error} is newer than this version of Quire"}

    return guarded


def _control(record: Record) -> Fields:
    key = record.key or b""
    if len(key) < 4:
        raise ProtocolError("a control record's key has a version and a type")
    number = int.from_bytes(key[2:4], "big", signed=True)
    if number not in _CONTROL_VALUES:
        raise ProtocolError(f"there is no control record of type {number}")
    value_type = _CONTROL_VALUES[number]
    # All begin with their version. It precedes the fields of an EndTxnMarker, and is the first field of all others.
    version, behind_version = _versioned(record.value, "value")
    _check_version(value_type, version)
    content = behind_version if value_type is control_records.EndTxnMarker else record.value or b""
    value = plain(decode(value_type, content, version), version)
    return {"record": ControlRecordType(number).name, "version": version, "value": value}


def _metadata(record: Record) -> Fields:
    message = decode_frame(record.value)
    version = _frame_version(record.value or b"")
    return {"record": type(message).__name__, "version": version, "value": plain(message, version)}


def _frame_version(frame: bytes) -> int:
    position = 0
    for _ in range(3):
        number, position = varints.read(frame, position)
    return number


def _keyed(key_types: dict[int, type[Message]], value_types: dict[int, type[Message]]) -> Decoder:
    """As the coordinators themselves decode their records."""
    types = RecordTypes(key_types, value_types)

    def decoded(record: Record) -> Fields:
        key, value, version = types.decode(record.key, record.value)
        fields: Fields = {"record": type(key).__name__.removesuffix("Key"), "key": plain(key, 0)}
        if value is None:
            return fields | {"value": None}
        return fields | {"version": version, "value": plain(value, version)}

    return decoded


def _group(decoded: Decoder) -> Decoder:
    """Also decodes subscriptions and assignments, which classic consumers store as bytes."""

    def with_members(record: Record) -> Fields:
        fields = decoded(record)
        value = fields["value"]
        if fields["record"] == "GroupMetadata" and isinstance(value, dict) and value["protocol_type"] == "consumer":
            for member in value["members"]:
                member["subscription"] = _of_consumer(ConsumerProtocolSubscription, member["subscription"])
                member["assignment"] = _of_consumer(ConsumerProtocolAssignment, member["assignment"])
        return fields

    return with_members


def _of_consumer(message: type[Message], content: bytes) -> object:
    try:
        version, rest = _versioned(content, "value")
        # New versions only append fields, so a reader decodes the fields that it knows.
        version = min(version, message.VERSIONS[1])
        return plain(decoder(message, version)(rest, 0)[0], version)
    except (ProtocolError, IndexError):
        return content


def _versioned(content: bytes | None, what: str) -> tuple[int, bytes]:
    if content is None or len(content) < 2:
        raise ProtocolError(f"a {what} of less than two bytes")
    return int.from_bytes(content[:2], "big", signed=True), content[2:]


def _check_version(message: type[Message], version: int) -> None:
    oldest, newest = message.VERSIONS
    if not oldest <= version <= newest:
        raise ProtocolError(f"{message.__name__} has no version {version}, only {oldest} to {newest}")


def plain(struct: Struct, version: int) -> Fields:
    """The fields that this version has, as numbers, text, bytes, lists and dicts."""
    fields: Fields = {}
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        left_out = field.tagged_in(version) and value == default_value(field)
        if field.in_version(version) and not left_out:
            names = _NAMES.get((type(struct).__name__, field.name))
            if names is not None and 0 <= value < len(names):
                value = names[value]
            fields[field.name] = _plain_value(value, "uuid" in (field.kind, field.of), version)
    return fields


def _plain_value(value: object, is_uuid: bool, version: int) -> object:
    if isinstance(value, Struct):
        return plain(value, version)
    if isinstance(value, list):
        return [_plain_value(each, is_uuid, version) for each in value]
    if isinstance(value, bytes) and is_uuid:
        return uuids.to_text(value)
    return value
