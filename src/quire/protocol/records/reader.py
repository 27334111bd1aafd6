"""Decodes the records of batches, for clients, for replays of metadata and coordinator logs, and for tools."""

from __future__ import annotations

from collections.abc import Iterator

from quire.protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME_BIT, BatchHeader, read_header, walk_batches
from quire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, decompress
from quire.protocol.records.invalid import InvalidRecords, corrupt
from quire.protocol.records.record import Record
from quire.protocol.records.records_native import decode
from quire.protocol.records.records_native import find_highest as find_highest_delta
from quire.protocol.records.records_native import find_timestamp as find_delta
from quire.seams.disk import Buffer

_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1


def records_section(buffer: Buffer, header: BatchHeader, limit: int = MAX_DECOMPRESSED_BYTES) -> Buffer:
    """The bytes of a batch's records, decompressed but still encoded; a view of `buffer` if they are not compressed."""
    if header.end > len(buffer):
        raise corrupt(f"A record batch of {header.size} bytes is cut off after {len(buffer) - header.position}.")
    view = memoryview(buffer)[header.position + HEADER_BYTES : header.end]
    return decompress(header.compression, view, limit)


def decode_batch(buffer: Buffer, header: BatchHeader, limit: int = MAX_DECOMPRESSED_BYTES) -> list[Record]:
    """The records of the batch with this header. The CRC is not checked (see `check_crc`)."""
    section = bytes(records_section(buffer, header, limit))
    append_timestamp = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
    try:
        return decode(section, header.record_count, header.base_offset, header.base_timestamp, append_timestamp)
    except ValueError as error:
        raise _unreadable(header, error) from None


def find_timestamp(
    buffer: Buffer, header: BatchHeader, timestamp: int, lowest_offset: int, limit: int = MAX_DECOMPRESSED_BYTES
) -> tuple[int, int] | None:
    """(offset, timestamp) of the batch's first record from `lowest_offset` on with this timestamp or a later one.

    The result is that of a search through `decode_batch`, but no record is decoded, and later ones are not read.
    """
    append_time = header.attributes & LOG_APPEND_TIME_BIT
    if append_time:
        lowest_delta = _INT64_MIN if timestamp <= header.max_timestamp else _INT64_MAX + 1
    else:
        lowest_delta = max(timestamp - header.base_timestamp, _INT64_MIN)
    if lowest_delta > _INT64_MAX:
        return None
    section = records_section(buffer, header, limit)
    try:
        found = find_delta(section, header.record_count, lowest_delta, lowest_offset - header.base_offset)
    except ValueError as error:
        raise _unreadable(header, error) from None
    if found is None:
        return None
    offset_delta, timestamp_delta = found
    found_timestamp = header.max_timestamp if append_time else header.base_timestamp + timestamp_delta
    return header.base_offset + offset_delta, found_timestamp


def find_highest(
    buffer: Buffer, header: BatchHeader, lowest_offset: int, limit: int = MAX_DECOMPRESSED_BYTES
) -> tuple[int, int] | None:
    """(offset, timestamp) of the batch's first record from `lowest_offset` on with the highest timestamp there."""
    if header.attributes & LOG_APPEND_TIME_BIT:
        return find_timestamp(buffer, header, header.max_timestamp, lowest_offset, limit)
    section = records_section(buffer, header, limit)
    try:
        found = find_highest_delta(section, header.record_count, lowest_offset - header.base_offset)
    except ValueError as error:
        raise _unreadable(header, error) from None
    return (header.base_offset + found[0], header.base_timestamp + found[1]) if found is not None else None


def _unreadable(header: BatchHeader, error: ValueError) -> InvalidRecords:
    return corrupt(f"The record batch at offset {header.base_offset} cannot be read: {error}.")


def read_records(buffer: Buffer, position: int = 0, limit: int = MAX_DECOMPRESSED_BYTES) -> list[Record]:
    """The records of the one batch at `position`."""
    return decode_batch(buffer, read_header(buffer, position), limit)


def iterate_records(buffer: Buffer, limit: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """The records of all whole batches, one batch decompressed at a time, control records included."""
    for header in walk_batches(buffer):
        yield from decode_batch(buffer, header, limit)
