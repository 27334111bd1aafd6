"""Requests from a seed: valid at first, then damaged in ways that find bugs."""

import random
import struct
from typing import Any

from quire.protocol import apis
from quire.protocol.codec import encode
from quire.protocol.messages.headers import RequestHeader
from quire.protocol.schema import Field, Message, Struct
from tests.wire.batches import batch

NAMES = ["", "t", "fuzz", "fuzz-2", "__consumer_offsets", "a" * 249, "no such topic", "ü"]
NUMBERS = {
    "int8": [0, 1, -1, 127, -128],
    "int16": [0, 1, -1, 5, 32767, -32768],
    "uint16": [0, 1, 65535],
    "int32": [0, 1, -1, 2, 20, 2**31 - 1, -(2**31)],
    "uint32": [0, 1, 2**32 - 1],
    "int64": [0, 1, -1, -2, 1_700_000_000_000, 2**63 - 1, -(2**63)],
}
LENGTHS = [struct.pack(">i", number) for number in (-1, 0, 1, 2**31 - 1, -(2**31), 2**24)]
LENGTHS += [struct.pack(">h", number) for number in (-1, 32767, -32768)]
LENGTHS += [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80\x80", b"\0"]


def request(rng: random.Random, keys: list[tuple[int, int, int]]) -> bytes:
    """A valid request, as its frame's payload, of one of the (API key, oldest, newest) given."""
    key, oldest, newest = rng.choice(keys)
    cls = apis.request_class(key)
    version = rng.randint(max(oldest, cls.VERSIONS[0]), min(newest, cls.VERSIONS[1]))
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=rng.getrandbits(31), client_id="fuzz"
    )
    return encode(header, apis.request_header_version(key, version)) + encode(message(rng, cls, version), version)


def message(rng: random.Random, cls: type[Message], version: int) -> Message:
    """A message of this class with random and extreme values."""
    made = _structure(rng, cls, version)
    assert isinstance(made, Message)
    return made


def damaged(rng: random.Random, payload: bytes) -> bytes:
    """The payload with up to four random changes."""
    data = bytearray(payload)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
        _injure(rng, data)
    return bytes(data)


def framed(rng: random.Random, payload: bytes) -> bytes:
    """Adds the length in front; sometimes a wrong one."""
    length = len(payload)
    if rng.random() < 0.1:
        length = rng.choice([0, -1, length + 1, max(0, length - 1), 2**31 - 1, -(2**31), 3, length * 2])
    return struct.pack(">i", length) + payload


def _injure(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(6):
        case 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        case 1:
            del data[at:]
        case 2:
            chosen = rng.choice(LENGTHS)
            data[at : at + len(chosen)] = chosen
        case 3:
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
        case 4:
            del data[at : at + rng.randrange(1, 9)]
        case 5:
            data[at:at] = data[at : at + rng.randrange(1, 200)] * rng.randrange(1, 5)


def _structure(rng: random.Random, cls: type[Struct], version: int) -> Struct:
    values = {
        field.name: _value(rng, field, version)
        for field in cls.FIELDS
        if (field.in_version(version) or field.tagged_in(version)) and rng.random() < 0.9
    }
    return cls(**values)


def _value(rng: random.Random, field: Field, version: int) -> Any:
    if field.nullable_in(version) and rng.random() < 0.15:
        return None
    if field.kind == "struct":
        return _structure(rng, field.structure, version)
    if field.kind == "array":
        count = rng.choice([0, 1, 1, 2, 3])
        if isinstance(field.of, str):
            return [_basic(rng, field.of) for _ in range(count)]
        return [_structure(rng, field.structure, version) for _ in range(count)]
    return _basic(rng, field.kind)


def _basic(rng: random.Random, kind: str) -> Any:
    match kind:
        case "boolean":
            return rng.random() < 0.5
        case "float64":
            return rng.choice([0.0, -1.5, float("inf")])
        case "uuid":
            return rng.choice([bytes(16), rng.randbytes(16)])
        case "string":
            return rng.choice(NAMES)
        case "binary":
            return rng.randbytes(rng.randrange(20))
        case "record_batches":
            return damaged(rng, batch([b"value"] * rng.randrange(1, 4), attributes=rng.choice([0, 0, 1, 5, 8, 32])))
        case _:
            return rng.choice(NUMBERS[kind])
