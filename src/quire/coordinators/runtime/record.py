"""The records of a coordinator's log: a key that identifies something, and its new value.

The key begins with its type, the value with its version. A record without a value is a tombstone.
"""

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

from quire.protocol.codec import decoder, encoder
from quire.protocol.errors import ProtocolError
from quire.protocol.schema import Message

_PREFIX = Struct(">h")

NO_PRODUCER_ID = -1


class StateRecord(NamedTuple):
    """One change. `version` is the version of the value, the one that Apache Kafka 4.3 writes."""

    key: Message
    value: Message | None
    version: int = 0


def tombstone(key: Message) -> StateRecord:
    return StateRecord(key, None)


class Origin(NamedTuple):
    """The offset of a replayed record, and the transaction that it is part of."""

    offset: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1

    @property
    def is_transactional(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


class UnknownRecordError(Exception):
    """The type or version of a record is newer than this code. The loader skips such records."""


def encode_key(key: Message) -> bytes:
    assert key.API_KEY is not None, f"{type(key).__name__} is not a key"
    out = bytearray(_PREFIX.pack(key.API_KEY))
    encoder(type(key), 0)(key, out)
    return bytes(out)


def encode_value(record: StateRecord) -> bytes | None:
    value = record.value
    if value is None:
        return None
    out = bytearray(_PREFIX.pack(record.version))
    encoder(type(value), record.version)(value, out)
    return bytes(out)


class RecordTypes:
    """The record types of one kind of coordinator, by the number that their keys begin with."""

    __slots__ = ("_keys", "_values")

    def __init__(self, keys: Mapping[int, type[Message]], values: Mapping[int, type[Message]]) -> None:
        self._keys = keys
        self._values = values

    def decode(self, key: bytes | None, value: bytes | None) -> StateRecord:
        """UnknownRecordError for a newer type or version, ProtocolError for bytes that cannot be decoded."""
        number, key_content = _split(key, "key")
        if number not in self._keys:
            raise UnknownRecordError(f"record type {number}")
        decoded_key = decoder(self._keys[number], 0)(key_content, 0)[0]
        if value is None:
            return StateRecord(decoded_key, None)
        version, content = _split(value, "value")
        value_type = self._values[number]
        oldest, newest = value_type.VERSIONS
        if not oldest <= version <= newest:
            raise UnknownRecordError(f"version {version} of {value_type.__name__}")
        return StateRecord(decoded_key, decoder(value_type, version)(content, 0)[0], version)


def _split(content: bytes | None, what: str) -> tuple[int, bytes]:
    if content is None or len(content) < _PREFIX.size:
        raise ProtocolError(f"a record has a {what} of less than two bytes")
    return _PREFIX.unpack_from(content)[0], content[_PREFIX.size :]
