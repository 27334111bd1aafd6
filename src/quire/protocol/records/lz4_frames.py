"""Decompresses lz4 frames, as Kafka's clients write them, into an `Output`.

    magic       4   04 22 4d 18
    descriptor  2   version 01, independent blocks, block checksums, content size, content checksum; the block size
    content size    8, if the descriptor says so
    checksum    1   the second byte of xxHash32 over descriptor and content size
    blocks          see lz4_native
    checksum    4   xxHash32 of the content, if the descriptor says so

The usual frames are read here. The lz4 package reads all others, and finds what is wrong with a broken beginning.
Blocks that depend on each other are refused: Kafka's consumers cannot read them.
"""

from __future__ import annotations

from struct import Struct

from quire.protocol.records.invalid import InvalidRecords, corrupt
from quire.protocol.records.lz4_native import BROKEN, COMPLETE, CUT_OFF, SLACK_BYTES, decompress_blocks
from quire.protocol.records.output import Output

_MAGIC = b"\x04\x22\x4d\x18"
_VERSION_BITS = 0xC0
_VERSION = 0x40
_INDEPENDENT_BLOCKS = 0x20
_CONTENT_SIZE = 0x08
_CONTENT_CHECKSUM = 0x04
_USUAL = _VERSION | _INDEPENDENT_BLOCKS | _CONTENT_SIZE | _CONTENT_CHECKSUM
"""A frame with any other bit is read by the package: block checksums, a dictionary, a reserved bit."""
_BLOCK_BYTES = {0x40: 1 << 16, 0x50: 1 << 18, 0x60: 1 << 20, 0x70: 1 << 22}

_STEP_BYTES = 256 * 1024

_UINT32 = Struct("<I")
_UINT64 = Struct("<Q")


def decompress_lz4(data: memoryview, output: Output) -> None:
    """Raises `InvalidRecords` if a frame is broken, or if the output becomes too large."""
    position = 0
    while True:
        output.begin_piece()
        position = _frame(data, position, output)
        if position == len(data):
            return


def _frame(data: memoryview, position: int, output: Output) -> int:
    """Decompresses the frame at `position`; returns the position after it."""
    from xxhash import xxh32_intdigest

    start = bytes(data[position : position + 15])
    if len(start) < 7 or start[:4] != _MAGIC:
        return _frame_by_package(data, position, output)
    flags = start[4]
    if not flags & _INDEPENDENT_BLOCKS:
        raise _broken("its blocks depend on each other, which Kafka's consumers cannot read")
    block_bytes = _BLOCK_BYTES.get(start[5])
    header_end = 14 if flags & _CONTENT_SIZE else 6
    if (
        block_bytes is None
        or flags & _VERSION_BITS != _VERSION
        or flags & ~_USUAL
        or len(start) <= header_end
        or start[header_end] != xxh32_intdigest(start[4:header_end]) >> 8 & 0xFF
    ):
        return _frame_by_package(data, position, output)
    before = output.size
    position = _blocks(data, position + header_end + 1, output, block_bytes)
    if flags & _CONTENT_SIZE and _UINT64.unpack_from(start, 6)[0] not in (0, output.size - before):
        raise _broken("it has not the size that it says")
    if flags & _CONTENT_CHECKSUM:
        if len(data) - position < _UINT32.size:
            raise _broken("it is cut off")
        with output.view() as view:
            if _UINT32.unpack_from(data, position)[0] != xxh32_intdigest(view[before:]):
                raise _broken("its checksum is wrong")
        position += _UINT32.size
    return position


def _blocks(data: memoryview, position: int, output: Output, block_bytes: int) -> int:
    # The beginning of a block that is cut off or broken may already exceed the limit.
    most = output.limit + block_bytes + SLACK_BYTES
    output.reserve(min(len(data) - position + SLACK_BYTES, most))
    while True:
        status, position, size = decompress_blocks(data, position, output.data, output.size, output.limit, block_bytes)
        output.fill(size)
        if status == COMPLETE:
            return position
        if status == CUT_OFF:
            raise _broken("it is cut off")
        if status == BROKEN:
            raise _broken("a block is broken")
        output.grow(most)


def _frame_by_package(data: memoryview, position: int, output: Output) -> int:
    from lz4 import frame

    context = frame.create_decompression_context()
    complete = False
    while not complete:
        try:
            piece, taken, complete = frame.decompress_chunk(context, data[position:], max_length=_STEP_BYTES)
        except RuntimeError as error:
            raise _broken(error) from None
        if not piece and not taken and not complete:
            raise _broken("it is cut off")
        output.add(piece)
        position += taken
    return position


def _broken(reason: object) -> InvalidRecords:
    return corrupt(f"The records of a batch cannot be decompressed as lz4: {reason}.")
