"""Records out of batches, for whoever needs them decoded: clients, replays of metadata and coordinator logs, tools."""

from __future__ import annotations

from collections.abc import Iterator

from quire.protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME_BIT, BatchHeader, read_header, walk_batches
from quire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, decompress
from quire.protocol.records.invalid import corrupt
from quire.protocol.records.record import Record
from quire.protocol.records.records_native import decode
from quire.seams.disk import Buffer


def records_section(buffer: Buffer, header: BatchHeader, limit: int = MAX_DECOMPRESSED_BYTES) -> Buffer:
    """The bytes of a batch's records, decompressed but still encoded; a view into `buffer` if they were plain."""
    if header.end > len(buffer):
        raise corrupt(f"A record batch of {header.size} bytes is cut off after {len(buffer) - header.position}.")
    view = memoryview(buffer)[header.position + HEADER_BYTES : header.end]
    return decompress(header.compression, view, limit)


def decode_batch(buffer: Buffer, header: BatchHeader, limit: int = MAX_DECOMPRESSED_BYTES) -> list[Record]:
    """The records of the batch with this header. The CRC is not checked: that is `check_crc`."""
    section = bytes(records_section(buffer, header, limit))
    append_timestamp = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
    try:
        return decode(section, header.record_count, header.base_offset, header.base_timestamp, append_timestamp)
    except ValueError as error:
        raise corrupt(f"The record batch at offset {header.base_offset} cannot be read: {error}.") from None


def read_records(buffer: Buffer, position: int = 0, limit: int = MAX_DECOMPRESSED_BYTES) -> list[Record]:
    """The records of the one batch at `position`."""
    return decode_batch(buffer, read_header(buffer, position), limit)


def iterate_records(buffer: Buffer, limit: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """The records of all whole batches, one batch decompressed at a time, control records included."""
    for header in walk_batches(buffer):
        yield from decode_batch(buffer, header, limit)
