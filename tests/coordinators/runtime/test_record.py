"""Records of a coordinator's log: keys begin with their type, values with their version."""

import pytest

from quire.coordinators.group.machine import GroupMachine
from quire.coordinators.runtime.record import StateRecord, UnknownRecordError, encode_key, encode_value, tombstone
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue

TYPES = GroupMachine.record_types
KEY = GroupMetadataKey(group="g")


def test_a_record_is_the_same_after_encoding_and_decoding() -> None:
    record = StateRecord(KEY, GroupMetadataValue(protocol_type="consumer", generation=3), 3)
    assert TYPES.decode(encode_key(record.key), encode_value(record)) == record


def test_a_tombstone_has_no_value() -> None:
    assert encode_value(tombstone(KEY)) is None
    assert TYPES.decode(encode_key(KEY), None) == tombstone(KEY)


def test_a_key_begins_with_its_type_and_a_value_with_its_version() -> None:
    assert encode_key(KEY)[:2] == b"\x00\x02"
    value = encode_value(StateRecord(KEY, GroupMetadataValue(), 3))
    assert value is not None and value[:2] == b"\x00\x03"


def test_an_unknown_type_or_version_is_distinguished_from_garbage() -> None:
    with pytest.raises(UnknownRecordError, match="record type 99"):
        TYPES.decode(b"\x00\x63anything", None)
    with pytest.raises(UnknownRecordError, match="version 77 of GroupMetadataValue"):
        TYPES.decode(encode_key(KEY), b"\x00\x4danything")


@pytest.mark.parametrize("key", [None, b"", b"\x00"])
def test_a_key_without_a_type_is_refused(key: bytes | None) -> None:
    with pytest.raises(ProtocolError, match="a record has a key of less than two bytes"):
        TYPES.decode(key, None)
