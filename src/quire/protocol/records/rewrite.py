"""Rewrites a batch with another codec, the broker's timestamp or fewer records; everything else stays the same.

This is needed if a topic's compression.type or message.timestamp.type differs from the producer's batch, and for
compaction. LogAppendTime alone needs no new batch: `set_max_timestamp` changes the old one in place.
"""

from __future__ import annotations

from quire.protocol.records.batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME_BIT, BatchHeader, write_header
from quire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Compression, compress
from quire.protocol.records.reader import records_section
from quire.seams.disk import Buffer


def rewrite(
    buffer: Buffer,
    header: BatchHeader,
    *,
    compression: Compression,
    level: int | None = None,
    append_time_ms: int | None = None,
    limit: int = MAX_DECOMPRESSED_BYTES,
    section: Buffer | None = None,
) -> bytearray:
    """The batch with this header, in `buffer`, as a new batch with this codec; with `append_time_ms`, LogAppendTime.

    `section` is the result of `records_section`, if the caller has it already.
    """
    if section is None:
        section = records_section(buffer, header, limit)
    records = compress(compression, section, level)
    attributes = header.attributes & ~CODEC_MASK | compression
    max_timestamp = header.max_timestamp
    if append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = append_time_ms
    return rebuild(
        header,
        records,
        attributes=attributes,
        base_timestamp=header.base_timestamp,
        max_timestamp=max_timestamp,
        record_count=header.record_count,
    )


def rebuild(
    header: BatchHeader,
    records: Buffer,
    *,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
) -> bytearray:
    """A batch of other `records`, compressed as `attributes` say, with the offset and producer of `header`."""
    batch = bytearray(HEADER_BYTES)
    batch += records
    write_header(
        batch,
        0,
        len(batch),
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=record_count,
    )
    return batch
