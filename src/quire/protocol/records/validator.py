"""Checks a produced batch before a log appends it unchanged.

Nothing is decoded: the header and the CRC are checked, then the records are scanned in place, or after a limited
decompression. Errors of single records are reported one by one (KIP-467). As in Kafka, one error is corrected instead
of refused: a max timestamp in the header that differs from that of the records, because time look-ups rely on it.
"""

from __future__ import annotations

from quire.protocol.errors import ErrorCode
from quire.protocol.records.batch import (
    CONTROL_BIT,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    check_crc,
    read_header,
    set_max_timestamp,
)
from quire.protocol.records.compression import Compression
from quire.protocol.records.expansion import Expansion
from quire.protocol.records.invalid import InvalidRecords, corrupt
from quire.protocol.records.record import NO_TIMESTAMP
from quire.protocol.records.records_native import LEFTOVER, NO_KEY, OK, WRONG_OFFSET, WRONG_TIMESTAMP, scan
from quire.seams.disk import Buffer

MAX_RECORD_ERRORS = 1000
"""Enough to find the error; a response must not grow with the request."""

_INT64_MAX = (1 << 63) - 1
_INT64_MIN = -(1 << 63)
_SPECIAL_BITS = LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT


def validate(
    buffer: bytearray | memoryview,
    *,
    max_batch_bytes: int,
    now_ms: int,
    require_key: bool = False,
    timestamp_before_max_ms: int = _INT64_MAX,
    timestamp_after_max_ms: int = _INT64_MAX,
    allow_multiple: bool = False,
    inspect_compressed: bool = True,
    expansion: Expansion | None = None,
    sections: list[Buffer] | None = None,
    scratch: bytearray | None = None,
) -> list[BatchHeader]:
    """Checks what a client sent for one partition; returns the header of its batch, or of all if several are allowed.

    `require_key` is for compacted topics; the two timestamp limits are message.timestamp.before.max.ms and
    .after.max.ms, which apply to CreateTime. `buffer` is writable. The decompressed records of each batch are added to
    `sections`, if given; with `scratch`, which only one batch may use, they are a view of it. Raises `InvalidRecords`,
    or the TakesLongError of `expansion`.
    """
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    total = len(view)
    lowest = now_ms - timestamp_before_max_ms
    highest = min(now_ms + timestamp_after_max_ms, _INT64_MAX)
    headers: list[BatchHeader] = []
    position = 0
    if total == 0:
        raise _invalid("A produce request must have a record batch for each of its partitions.")
    while position < total:
        header = read_header(view, position)
        size = header.length + LENGTH_END
        end = position + size
        if size > max_batch_bytes:
            raise InvalidRecords(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"A record batch has {size} bytes, {max_batch_bytes} are allowed (max.message.bytes of the topic).",
            )
        if end != total:
            if end > total:
                raise corrupt(f"A record batch of {size} bytes is cut off after {total - position}.")
            if not allow_multiple:
                raise _invalid("A produce request must have exactly one record batch for each of its partitions.")
        _check_header(header)
        check_crc(view, header)
        section: Buffer = view[position + HEADER_BYTES : end]
        codec = header.compression
        if codec is Compression.NONE:
            _check_records(view, header, section, require_key, lowest, highest)
        elif inspect_compressed:
            expansion = expansion or Expansion()
            section = expansion.decompress(codec, section, scratch)
            _check_records(view, header, section, require_key, lowest, highest)
        if sections is not None:
            sections.append(section)
        headers.append(header)
        position = end
    return headers


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)


def _check_header(header: BatchHeader) -> None:
    """Checks the header alone: counts, and the attributes that a client may or must set."""
    count = header.record_count
    if count <= 0:
        raise _invalid(f"A record batch says it has {count} records.")
    if header.last_offset_delta + 1 != count:
        raise _invalid(f"A record batch of {count} records has the last offset delta {header.last_offset_delta}.")
    if header.base_offset != 0:
        raise _invalid(f"The base offset of a produced batch is 0, not {header.base_offset}: the broker assigns it.")
    attributes = header.attributes
    if attributes & _SPECIAL_BITS:
        if attributes & CONTROL_BIT:
            raise _invalid("Clients are not allowed to write control records.")
        if attributes & DELETE_HORIZON_BIT:
            raise _invalid("Clients are not allowed to set a delete horizon.")
        if attributes & LOG_APPEND_TIME_BIT:
            raise InvalidRecords(
                ErrorCode.INVALID_TIMESTAMP, "Producers must not set the timestamp type LogAppendTime; brokers do."
            )
        if attributes & TRANSACTIONAL_BIT and header.producer_id < 0:
            raise _invalid("A transactional record batch needs a producer id.")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise _invalid(
            f"The record batch of producer id {header.producer_id} has the sequence number {header.base_sequence} and "
            f"the epoch {header.producer_epoch}; neither may be negative."
        )


def _check_records(
    buffer: bytearray | memoryview, header: BatchHeader, section: Buffer, require_key: bool, lowest: int, highest: int
) -> None:
    base = header.base_timestamp
    count = header.record_count
    # The scan compares deltas, so that no sum can overflow there; Python's integers cannot overflow.
    unset_delta = NO_TIMESTAMP - base
    lowest_delta = lowest - base
    if lowest_delta < _INT64_MIN:
        lowest_delta = _INT64_MIN
    highest_delta = highest - base
    if highest_delta > _INT64_MAX:
        highest_delta = _INT64_MAX
    found, index, position, delta = scan(section, 0, 0, count, require_key, unset_delta, lowest_delta, highest_delta)
    if found == OK:
        if base + delta != header.max_timestamp:
            set_max_timestamp(buffer, header, CREATE_TIME, base + delta)
        return

    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    while found != OK:
        if found == LEFTOVER:
            errors.append((index - 1, "There are bytes after the last record."))
            break
        if found == NO_KEY:
            errors.append((index, "A compacted topic cannot take a record without a key."))
        elif found == WRONG_TIMESTAMP:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, f"The timestamp {base + delta} is not between {lowest} and {highest}."))
        elif found == WRONG_OFFSET:
            errors.append((index, f"The record does not have the offset delta {index}."))
            break
        else:
            errors.append((index, "The record is malformed."))
            break
        if len(errors) == MAX_RECORD_ERRORS:
            break
        found, index, position, delta = scan(
            section, position, index + 1, count, require_key, unset_delta, lowest_delta, highest_delta
        )
    first, reason = errors[0]
    several = f"{len(errors)} records were rejected, the first of them " if len(errors) > 1 else ""
    raise InvalidRecords(code, f"{several}record {first} of the batch: {reason}", errors)
