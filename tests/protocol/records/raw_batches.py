"""Batches and records assembled byte by byte, valid or not, by code that is independent of the builder."""

from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from quire.protocol.records import HEADER_BYTES, Record
from quire.protocol.records.batch import write_header
from quire.protocol.records.builder import MAX_TIMESTAMP


def varint(value: int) -> bytes:
    raw = value * 2 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def sized(field: bytes | None) -> bytes:
    return varint(-1) if field is None else varint(len(field)) + field


def raw_record(
    offset_delta: int,
    key: bytes | None = b"key",
    value: bytes | None = b"value",
    headers: Sequence[tuple[bytes, bytes | None]] = (),
    timestamp_delta: int = 0,
) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + sized(key) + sized(value) + varint(len(headers))
    for name, content in headers:
        body += sized(name) + sized(content)
    return varint(len(body)) + body


def raw_batch(section: bytes, count: int = 1, **fields: Any) -> bytearray:
    """A sealed batch around `section`; `fields` replace the header fields of a plain producer."""
    header = {
        "base_offset": 0,
        "leader_epoch": -1,
        "attributes": 0,
        "last_offset_delta": count - 1,
        "base_timestamp": 1_000_000,
        "max_timestamp": 1_000_000,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": count,
    }
    assert fields.keys() <= header.keys()
    batch = bytearray(HEADER_BYTES) + section
    write_header(batch, 0, len(batch), **(header | fields))
    return batch


# The interpreted loops are slow on a busy machine, which is not a fault.
patient = settings(deadline=None)

timestamps = st.integers(min_value=-1, max_value=MAX_TIMESTAMP)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
records = st.builds(
    Record,
    timestamp=timestamps,
    key=st.none() | st.binary(max_size=100),
    value=st.none() | st.binary(max_size=300),
    headers=headers,
)
record_lists = st.lists(records, min_size=1, max_size=5)
