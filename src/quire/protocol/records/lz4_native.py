# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# mypy: disable-error-code="no-any-return, no-untyped-call, name-defined, operator, arg-type"
"""Decompresses the blocks of an lz4 frame into a buffer of the caller, without allocations and without the GIL.

The lz4 package returns every piece as a new object, whose pages the system has to provide and whose bytes have to be
copied once more. Of a batch that is compressed well, this takes most of the time. Interpreted, the package decompresses
each block.

    size      4   little-endian; the highest bit says that the block is not compressed; 0 ends the blocks
    sequence      token (literals 4 bits, match 4 bits) | more literal length | literals
                  | offset 2 | more match length; the last sequence of a block ends after its literals
    sequence  ...

A block is accepted if the lz4 library accepts it for a buffer of `block_bytes`: it must end with five literals, and the
last match must begin twelve bytes before the end of a full block.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy, memset

COMPILED: bool = cython.compiled

_COMPLETE = cython.declare(cython.int, 0)
_NO_ROOM = cython.declare(cython.int, 1)
_CUT_OFF = cython.declare(cython.int, 2)
_BROKEN = cython.declare(cython.int, 3)

COMPLETE: int = _COMPLETE
NO_ROOM: int = _NO_ROOM
CUT_OFF: int = _CUT_OFF
BROKEN: int = _BROKEN

SLACK_BYTES = 32
"""Copies of sixteen bytes may write this much after what is decompressed."""
_SLACK = cython.declare(cython.Py_ssize_t, SLACK_BYTES)
_RELEASE_GIL_BYTES = cython.declare(cython.Py_ssize_t, 1 << 14)

_LAST_LITERALS = cython.declare(cython.Py_ssize_t, 5)
_LAST_MATCH = cython.declare(cython.Py_ssize_t, 12)
_FAILED = cython.declare(cython.Py_ssize_t, -1)
_TOO_LONG = cython.declare(cython.Py_ssize_t, -2)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _repeat(to: cython.pointer(cython.uchar), offset: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.void:
    """Appends `size` bytes, each a copy of the one `offset` before it."""
    source: cython.pointer(cython.const[cython.uchar]) = to - offset
    done: cython.Py_ssize_t
    if offset == 1:
        memset(to, source[0], size)
    elif offset >= 16 and size <= 256:
        done = 0
        while done < size:
            memcpy(to + done, source + done, 16)
            done += 16
    elif offset >= size:
        memcpy(to, source, size)
    else:
        # The copied part doubles with each copy.
        done = 0
        while size - done > offset + done:
            memcpy(to + done, source, offset + done)
            done += offset + done
        memcpy(to + done, source, size - done)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _block(
    source: cython.pointer(cython.const[cython.uchar]),
    size: cython.Py_ssize_t,
    to: cython.pointer(cython.uchar),
    room: cython.Py_ssize_t,
    block_bytes: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The decompressed size of a block, _FAILED, or _TOO_LONG if it is larger than `room`, which has slack after it.

    `room` is at most `block_bytes`.
    """
    at: cython.Py_ssize_t = 0
    done: cython.Py_ssize_t = 0
    token: cython.Py_ssize_t
    count: cython.Py_ssize_t
    more: cython.Py_ssize_t
    offset: cython.Py_ssize_t
    length: cython.Py_ssize_t
    last_at: cython.Py_ssize_t = size - 64
    last_done: cython.Py_ssize_t = room - 64
    while at < size:
        while at <= last_at and done <= last_done:
            # The usual sequence, short and not near an end. What is copied too much is overwritten.
            token = source[at]
            count = token >> 4
            offset = source[at + count + 1] | (cython.cast(cython.Py_ssize_t, source[at + count + 2]) << 8)
            length = (token & 15) + 4
            if count == 15 or length == 19 or offset < 16 or offset > done + count:
                break
            memcpy(to + done, source + at + 1, 16)
            done += count
            at += count + 3
            memcpy(to + done, to + done - offset, 16)
            memcpy(to + done + 16, to + done - offset + 16, 4)
            done += length
        token = source[at]
        at += 1
        count = token >> 4
        if count == 15:
            more = 255
            while more == 255:
                if at >= size:
                    return _FAILED
                more = source[at]
                at += 1
                count += more
        if count > size - at or count > block_bytes - done:
            return _FAILED
        if count > room - done:
            return _TOO_LONG
        memcpy(to + done, source + at, count)
        done += count
        at += count
        if at == size:
            return done
        if size - at < 3 + _LAST_LITERALS or done > block_bytes - _LAST_MATCH:
            return _FAILED
        offset = source[at] | (cython.cast(cython.Py_ssize_t, source[at + 1]) << 8)
        at += 2
        count = (token & 15) + 4
        if count == 19:
            more = 255
            while more == 255:
                if at >= size:
                    return _FAILED
                more = source[at]
                at += 1
                count += more
        if offset == 0 or offset > done or count > block_bytes - _LAST_LITERALS - done:
            return _FAILED
        if count > room - done:
            return _TOO_LONG
        _repeat(to + done, offset, count)
        done += count
    return _FAILED


def _interpreted_block(data: memoryview, out: memoryview, room: int, block_bytes: int) -> int:
    from lz4.block import LZ4BlockError, decompress

    try:
        decompressed = decompress(data, uncompressed_size=block_bytes)
    except LZ4BlockError:
        return _FAILED
    if len(decompressed) > room:
        return _TOO_LONG
    out[: len(decompressed)] = decompressed
    return len(decompressed)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.int, cython.Py_ssize_t, cython.Py_ssize_t))
def _blocks(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    out: cython.uchar[::1],
    filled: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    block_bytes: cython.Py_ssize_t,
) -> tuple[int, int, int]:
    end: cython.Py_ssize_t = len(data)
    usable: cython.Py_ssize_t = len(out) - _SLACK
    size: cython.Py_ssize_t
    room: cython.Py_ssize_t
    produced: cython.Py_ssize_t
    plain: cython.bint
    while True:
        if end - position < 4:
            return _CUT_OFF, position, filled
        size = (
            data[position]
            | (cython.cast(cython.Py_ssize_t, data[position + 1]) << 8)
            | (cython.cast(cython.Py_ssize_t, data[position + 2]) << 16)
            | (cython.cast(cython.Py_ssize_t, data[position + 3] & 0x7F) << 24)
        )
        plain = data[position + 3] >= 0x80
        if size == 0 and not plain:
            return _COMPLETE, position + 4, filled
        if size > block_bytes:
            return _BROKEN, position, filled
        if size > end - position - 4:
            return _CUT_OFF, position, filled
        if filled > limit or usable <= filled:
            return _NO_ROOM, position, filled
        room = min(block_bytes, usable - filled)
        if plain:
            if size > room:
                return _NO_ROOM, position, filled
            if cython.compiled:
                memcpy(cython.address(out[filled]), cython.address(data[position + 4]), size)
            else:
                out[filled : filled + size] = data[position + 4 : position + 4 + size]
            produced = size
        elif cython.compiled:
            produced = _block(cython.address(data[position + 4]), size, cython.address(out[filled]), room, block_bytes)
        else:
            produced = _interpreted_block(data[position + 4 : position + 4 + size], out[filled:], room, block_bytes)
        if produced == _TOO_LONG:
            return _NO_ROOM, position, filled
        if produced < 0:
            return _BROKEN, position, filled
        filled += produced
        position += 4 + size


def decompress_blocks(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    out: cython.uchar[::1],
    filled: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    block_bytes: cython.Py_ssize_t,
) -> tuple[int, int, int]:
    """Decompresses the blocks from `position` on into `out` after the `filled` bytes, up to the end of the blocks.

    Returns COMPLETE and the position after the end mark; NO_ROOM if `out` is too small for the block at the position,
    or if `limit` bytes are exceeded; CUT_OFF or BROKEN; and how much of `out` is filled. `SLACK_BYTES` after that may
    be overwritten. No block has more than `block_bytes`.
    """
    status: cython.int
    if cython.compiled and len(data) - position > _RELEASE_GIL_BYTES:
        with cython.nogil:
            status, position, filled = _blocks(data, position, out, filled, limit, block_bytes)
    else:
        status, position, filled = _blocks(data, position, out, filled, limit, block_bytes)
    return status, position, filled
