# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, no-any-return"
"""The loop over batch headers that finds a batch by timestamp: where `time_search` spends most of its time.

If a C compiler is available at installation, Cython compiles this file; otherwise it is interpreted, with the same
results.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.quire.protocol.records.wire_numbers import int32, int64
else:
    from quire.protocol.records.wire_numbers import int32, int64

COMPILED: bool = cython.compiled

_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 61)
_LENGTH_END = cython.declare(cython.Py_ssize_t, 12)
_LEAST_LENGTH = cython.declare(cython.longlong, 49)


def find_time(
    view: memoryview, from_offset: cython.longlong, timestamp: cython.longlong, highest: cython.bint
) -> tuple[int, int, int]:
    """Searches the batches in the buffer for the first that reaches both `timestamp` and `from_offset`.

    With `highest`, for the last one whose timestamp is above those of all before it. Returns three numbers. Where the
    search stopped: at the batch or, with `highest` or if none was found, after the last complete header or before bytes
    that are not a batch. The position of the batch, -1 if none was found. The offset after the last batch that was
    searched, -1 if there was none.
    """
    filled: cython.Py_ssize_t = len(view)
    data: cython.const[cython.uchar][::1] = view
    at: cython.Py_ssize_t = 0
    found_at: cython.Py_ssize_t = -1
    last_offset: cython.longlong = -2
    length: cython.longlong
    while filled - at >= _HEADER_BYTES and data[at + 16] == 2:
        length = int32(data, at + 8)
        if length < _LEAST_LENGTH or int32(data, at + 23) < 0 or int64(data, at) < 0:
            break
        last_offset = int64(data, at) + int32(data, at + 23)
        # Compaction leaves empty batches that still have the timestamp of their former records.
        if int64(data, at + 35) >= timestamp and last_offset >= from_offset and int32(data, at + 57) > 0:
            found_at = at
            if not highest:
                break
            timestamp = int64(data, at + 35) + 1
        at += _LENGTH_END + cython.cast(cython.Py_ssize_t, length)
    return at, found_at, last_offset + 1
