# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found"
"""The loops over single records: scan (check without decoding), look up a timestamp, decode.

It also has the whole check of a usual produced batch in one call, because most requests contain just that.

Cython compiles the module if there is a C compiler at installation; interpreted it gives the same results. The code
checks bounds itself, because the compiled code does not, and compares numbers from the wire before it adds them,
because compiled integers wrap and interpreted ones do not. Only the other modules of this package call it.

A record consists of its length, attributes (one byte, unused), timestamp delta, offset delta, key length, key, value
length, value, header count and headers (key length, key, value length, value). All numbers are zigzag varints; a length
of -1 means null.
"""

from __future__ import annotations

import cython

from quire.protocol.records.batch import BatchHeader
from quire.protocol.records.checksum import crc32c
from quire.protocol.records.record import Header, Record

if cython.compiled:
    from cython.cimports.quire.protocol.records.crc32c_native import crc32c_at
    from cython.cimports.quire.protocol.records.wire_numbers import int16, int32, int64, sized, uint32, varint, varlong
else:
    from quire.protocol.records.wire_numbers import int16, int32, int64, sized, uint32, varint, varlong

COMPILED: bool = cython.compiled

_OK = cython.declare(cython.int, 0)
_MALFORMED = cython.declare(cython.int, 1)
_LEFTOVER = cython.declare(cython.int, 2)
_WRONG_OFFSET = cython.declare(cython.int, 3)
_NO_KEY = cython.declare(cython.int, 4)
_WRONG_TIMESTAMP = cython.declare(cython.int, 5)

# The results of a scan, for callers in Python. After the last two the scan can continue with the next record.
OK: int = _OK
MALFORMED: int = _MALFORMED
LEFTOVER: int = _LEFTOVER
WRONG_OFFSET: int = _WRONG_OFFSET
NO_KEY: int = _NO_KEY
WRONG_TIMESTAMP: int = _WRONG_TIMESTAMP

# A shorter scan is over before another thread would have woken up.
_RELEASE_GIL_BYTES = cython.declare(cython.Py_ssize_t, 1 << 20)

# No timestamp is this large; two of them can be added and subtracted in 64 bits.
_FAR = cython.declare(cython.longlong, 1 << 62)
_TRANSACTIONAL = cython.declare(cython.longlong, 0x10)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _skip_headers(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """The position after a record's headers, or -1."""
    count: cython.longlong
    size: cython.longlong
    count, position = varint(data, position, end)
    # A header takes at least two bytes: a count that cannot be true is refused without a loop.
    if position < 0 or count < 0 or count > (end - position) // 2:
        return -1
    while count > 0:
        size, position = sized(data, position, end)
        if position < 0 or size < 0:
            return -1
        size, position = sized(data, position + size, end)
        if position < 0:
            return -1
        if size > 0:
            position += size
        count -= 1
    return position


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.int, cython.Py_ssize_t, cython.Py_ssize_t, cython.longlong))
def _scan(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    index: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    require_key: cython.bint,
    unset_delta: cython.longlong,
    lowest_delta: cython.longlong,
    highest_delta: cython.longlong,
) -> tuple[int, int, int, int]:
    end: cython.Py_ssize_t = len(data)
    stop: cython.Py_ssize_t
    size: cython.longlong
    key_size: cython.longlong
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    latest_delta: cython.longlong = unset_delta
    while index < count:
        size, position = sized(data, position, end)
        if position < 0 or size < 1:
            return _MALFORMED, index, -1, latest_delta
        stop = position + size
        timestamp_delta, position = varlong(data, position + 1, stop)
        if position < 0:
            return _MALFORMED, index, -1, latest_delta
        offset_delta, position = varint(data, position, stop)
        if position < 0:
            return _MALFORMED, index, -1, latest_delta
        key_size, position = sized(data, position, stop)
        if position < 0:
            return _MALFORMED, index, -1, latest_delta
        if key_size > 0:
            position += key_size
        size, position = sized(data, position, stop)
        if position < 0:
            return _MALFORMED, index, -1, latest_delta
        if size > 0:
            position += size
        if _skip_headers(data, position, stop) != stop:
            return _MALFORMED, index, -1, latest_delta
        position = stop
        if offset_delta != index:
            return _WRONG_OFFSET, index, position, latest_delta
        if require_key and key_size < 0:
            return _NO_KEY, index, position, latest_delta
        if timestamp_delta != unset_delta and (timestamp_delta < lowest_delta or timestamp_delta > highest_delta):
            return _WRONG_TIMESTAMP, index, position, timestamp_delta
        if timestamp_delta > latest_delta:
            latest_delta = timestamp_delta
        index += 1
    if position != end:
        return _LEFTOVER, index, position, latest_delta
    return _OK, index, position, latest_delta


def scan(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    index: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    require_key: cython.bint,
    unset_delta: cython.longlong,
    lowest_delta: cython.longlong,
    highest_delta: cython.longlong,
) -> tuple[int, int, int, int]:
    """Checks the records of an uncompressed records section, from record `index` at `position` up to `count` of them.

    They must fill the section exactly, carry the offset deltas 0, 1, 2 and so on, a key if `require_key`, and timestamp
    deltas within the bounds, except for `unset_delta`, which means no timestamp. Returns the result (OK or the first
    error), the index of that record, the position after it (-1 if unknown) and the latest timestamp delta
    (of a WRONG_TIMESTAMP, that one).
    """
    status: cython.int
    latest: cython.longlong
    if len(data) - position > _RELEASE_GIL_BYTES:
        with cython.nogil:
            status, index, position, latest = _scan(
                data, position, index, count, require_key, unset_delta, lowest_delta, highest_delta
            )
    else:
        status, index, position, latest = _scan(
            data, position, index, count, require_key, unset_delta, lowest_delta, highest_delta
        )
    return status, index, position, latest


def check_plain(
    batch: memoryview,
    max_bytes: cython.longlong,
    require_key: cython.bint,
    now_ms: cython.longlong,
    before_max_ms: cython.longlong,
    after_max_ms: cython.longlong,
) -> BatchHeader | None:
    """The header of the one batch in `batch` if it is plain and passes every check of `validator.validate`.

    A plain batch is not compressed, has no attributes except that of transactions, and has timestamps whose sums cannot
    overflow. None for all other batches, valid or not: the slower `validate` decides about them.
    """
    data: cython.const[cython.uchar][::1] = batch
    total: cython.Py_ssize_t = len(data)
    length: cython.longlong
    count: cython.longlong
    base: cython.longlong
    attributes: cython.longlong
    producer_id: cython.longlong
    lowest: cython.longlong
    highest: cython.longlong
    status: cython.int
    latest: cython.longlong
    checksum: cython.longlong
    if total < 61 or total > max_bytes or data[16] != 2:
        return None
    length = int32(data, 8)
    count = int32(data, 57)
    base = int64(data, 27)
    attributes = int16(data, 21)
    producer_id = int64(data, 43)
    if (
        length != total - 12
        or count <= 0
        or int32(data, 23) != count - 1
        or int64(data, 0) != 0
        or not (attributes == 0 or (attributes == _TRANSACTIONAL and producer_id >= 0))
        or (producer_id >= 0 and (int16(data, 51) < 0 or int32(data, 53) < 0))
        or not 0 <= base < _FAR
        or not 0 <= now_ms < _FAR
    ):
        return None
    lowest = -_FAR if before_max_ms > _FAR else now_ms - before_max_ms
    highest = _FAR if after_max_ms > _FAR - now_ms else now_ms + after_max_ms
    if cython.compiled:
        if total > _RELEASE_GIL_BYTES:
            with cython.nogil:
                checksum = crc32c_at(cython.address(data[0]), 21, total)
        else:
            checksum = crc32c_at(cython.address(data[0]), 21, total)
    else:
        checksum = crc32c(batch[21:])
    if checksum != uint32(data, 17):
        return None
    if total > _RELEASE_GIL_BYTES:
        with cython.nogil:
            status, _, _, latest = _scan(data, 61, 0, count, require_key, -1 - base, lowest - base, highest - base)
    else:
        status, _, _, latest = _scan(data, 61, 0, count, require_key, -1 - base, lowest - base, highest - base)
    if status != _OK or base + latest != int64(data, 35):
        return None
    header: BatchHeader = BatchHeader.__new__(BatchHeader)
    header.position = 0
    header.base_offset = 0
    header.length = length
    header.leader_epoch = int32(data, 12)
    header.magic = 2
    header.crc = uint32(data, 17)
    header.attributes = attributes
    header.last_offset_delta = count - 1
    header.base_timestamp = base
    header.max_timestamp = base + latest
    header.producer_id = producer_id
    header.producer_epoch = int16(data, 51)
    header.base_sequence = int32(data, 53)
    header.record_count = count
    return header


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t, cython.longlong, cython.longlong))
def _find_timestamp(
    data: cython.const[cython.uchar][::1],
    count: cython.Py_ssize_t,
    lowest_timestamp_delta: cython.longlong,
    lowest_offset_delta: cython.longlong,
) -> tuple[int, int, int, int]:
    """The index of the record (`count` if there is none), the position after it (-1 if broken), and its deltas."""
    end: cython.Py_ssize_t = len(data)
    position: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    index: cython.Py_ssize_t = 0
    size: cython.longlong
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    while index < count:
        size, position = sized(data, position, end)
        if position < 0 or size < 1:
            return index, -1, 0, 0
        stop = position + size
        timestamp_delta, position = varlong(data, position + 1, stop)
        if position < 0:
            return index, -1, 0, 0
        offset_delta, position = varint(data, position, stop)
        if position < 0:
            return index, -1, 0, 0
        if timestamp_delta >= lowest_timestamp_delta and offset_delta >= lowest_offset_delta:
            return index, stop, offset_delta, timestamp_delta
        position = stop
        index += 1
    return count, position, 0, 0


def find_timestamp(
    data: cython.const[cython.uchar][::1],
    count: cython.Py_ssize_t,
    lowest_timestamp_delta: cython.longlong,
    lowest_offset_delta: cython.longlong,
) -> tuple[int, int] | None:
    """The offset delta and timestamp delta of the first of `count` records that has at least the ones given.

    None if there is none; a broken record before it is a ValueError that names its index. Nothing after it is read.
    """
    index: cython.Py_ssize_t
    position: cython.Py_ssize_t
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    if len(data) > _RELEASE_GIL_BYTES:
        with cython.nogil:
            index, position, offset_delta, timestamp_delta = _find_timestamp(
                data, count, lowest_timestamp_delta, lowest_offset_delta
            )
    else:
        index, position, offset_delta, timestamp_delta = _find_timestamp(
            data, count, lowest_timestamp_delta, lowest_offset_delta
        )
    if position < 0:
        raise ValueError(f"record {index} is broken")
    return (offset_delta, timestamp_delta) if index < count else None


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t, cython.longlong, cython.longlong))
def _find_highest(
    data: cython.const[cython.uchar][::1], count: cython.Py_ssize_t, lowest_offset_delta: cython.longlong
) -> tuple[int, int, int, int]:
    """How many records were passed, the position after them (-1 if broken), and the deltas; the offset's -1 if none.

    `lowest_offset_delta` is not negative. Offset deltas are taken as they come: a compacted batch has gaps.
    """
    end: cython.Py_ssize_t = len(data)
    position: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    index: cython.Py_ssize_t = 0
    size: cython.longlong
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    best_offset: cython.longlong = -1
    best_timestamp: cython.longlong = 0
    while index < count:
        size, position = sized(data, position, end)
        if position < 0 or size < 1:
            return index, -1, 0, 0
        stop = position + size
        timestamp_delta, position = varlong(data, position + 1, stop)
        if position < 0:
            return index, -1, 0, 0
        offset_delta, position = varint(data, position, stop)
        if position < 0:
            return index, -1, 0, 0
        if offset_delta >= lowest_offset_delta and (best_offset < 0 or timestamp_delta > best_timestamp):
            best_offset = offset_delta
            best_timestamp = timestamp_delta
        position = stop
        index += 1
    return index, position, best_offset, best_timestamp


def find_highest(
    data: cython.const[cython.uchar][::1], count: cython.Py_ssize_t, lowest_offset_delta: cython.longlong
) -> tuple[int, int] | None:
    """The offset delta and timestamp delta of the first of `count` records with the highest timestamp.

    Only of those that have at least the offset delta given; None if there is none. A broken record is a ValueError that
    names its index.
    """
    index: cython.Py_ssize_t
    position: cython.Py_ssize_t
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    if lowest_offset_delta < 0:
        lowest_offset_delta = 0
    if len(data) > _RELEASE_GIL_BYTES:
        with cython.nogil:
            index, position, offset_delta, timestamp_delta = _find_highest(data, count, lowest_offset_delta)
    else:
        index, position, offset_delta, timestamp_delta = _find_highest(data, count, lowest_offset_delta)
    if position < 0:
        raise ValueError(f"record {index} is broken")
    return (offset_delta, timestamp_delta) if offset_delta >= 0 else None


def decode(
    source: bytes, count: cython.Py_ssize_t, base_offset: int, base_timestamp: int, append_timestamp: int | None
) -> list[Record]:
    """All `count` records of an uncompressed records section; a broken one is a ValueError that names its index.

    `append_timestamp`, when given, is every record's timestamp (LogAppendTime). Offset deltas are taken as they come:
    a compacted batch has gaps.
    """
    data: cython.const[cython.uchar][::1] = source
    chars: cython.p_char = source
    end: cython.Py_ssize_t = len(source)
    position: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    index: cython.Py_ssize_t
    size: cython.longlong
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    header_count: cython.longlong
    records: list[Record] = []
    for index in range(count):
        size, position = sized(data, position, end)
        if position < 0 or size < 1:
            raise ValueError(f"record {index} has an impossible length")
        stop = position + size
        timestamp_delta, position = varlong(data, position + 1, stop)
        if position < 0:
            raise ValueError(f"record {index} has no readable timestamp")
        offset_delta, position = varint(data, position, stop)
        if position < 0:
            raise ValueError(f"record {index} has no readable offset")
        key: bytes | None = None
        size, position = sized(data, position, stop)
        if position < 0:
            raise ValueError(f"record {index} has a broken key")
        if size >= 0:
            key = chars[position : position + size]
            position += size
        value: bytes | None = None
        size, position = sized(data, position, stop)
        if position < 0:
            raise ValueError(f"record {index} has a broken value")
        if size >= 0:
            value = chars[position : position + size]
            position += size
        headers: list[Header] = []
        if _skip_headers(data, position, stop) != stop:
            raise ValueError(f"record {index} has broken headers")
        header_count, position = varint(data, position, stop)
        while header_count > 0:
            size, position = sized(data, position, stop)
            name: str = chars[position : position + size].decode("utf-8", "replace")
            size, position = sized(data, position + size, stop)
            if size < 0:
                headers.append((name, None))
            else:
                headers.append((name, chars[position : position + size]))
                position += size
            header_count -= 1
        timestamp = base_timestamp + timestamp_delta if append_timestamp is None else append_timestamp
        records.append(Record(base_offset + offset_delta, timestamp, key, value, headers))
        position = stop
    if position != end:
        raise ValueError(f"there are {end - position} bytes after the last record")
    return records
