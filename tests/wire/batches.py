"""Record batches built field by field, so that tests can make any field wrong.

Independent of `quire.protocol.records` on purpose: what these tests send must not share that module's mistakes.
"""

import gzip
import struct
from collections.abc import Sequence

import crc32c

_BEFORE_CRC = struct.Struct(">qiib")
_AFTER_CRC = struct.Struct(">hiqqqhii")
HEADER_BYTES = 61
NOW_MS = 1_700_000_000_000


def varint(number: int) -> bytes:
    """A zigzag varint, the encoding of all numbers in records."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest & ~0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def record(
    value: bytes | None,
    offset_delta: int = 0,
    *,
    key: bytes | None = None,
    timestamp_delta: int = 0,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + _field(key) + _field(value) + varint(len(headers))
    body += b"".join(varint(len(name)) + name + _field(content) for name, content in headers)
    return varint(len(body)) + body


def batch(
    values: Sequence[bytes | None] = (b"v",),
    *,
    records: bytes | None = None,
    base_offset: int = 0,
    length: int | None = None,
    leader_epoch: int = -1,
    magic: int = 2,
    crc: int | None = None,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int = NOW_MS,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    record_count: int | None = None,
) -> bytes:
    """One batch. Fields that are not given have the values of a correct producer."""
    body = b"".join(record(value, delta) for delta, value in enumerate(values)) if records is None else records
    if attributes & 7 == 1 and records is None:
        body = gzip.compress(body)
    after_crc = _AFTER_CRC.pack(
        attributes,
        len(values) - 1 if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        base_timestamp if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(values) if record_count is None else record_count,
    )
    checked = after_crc + body
    size = HEADER_BYTES - 12 + len(body)
    before_crc = _BEFORE_CRC.pack(base_offset, size if length is None else length, leader_epoch, magic)
    return before_crc + struct.pack(">I", crc32c.crc32c(checked) if crc is None else crc) + checked


def _field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content
