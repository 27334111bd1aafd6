"""Finds the ends of the blocks of a zstd frame, so that the output of each step of the decompressor is limited.

A block of four bytes may become 128 KB, so the number of blocks matters, which their headers show:

    magic    4   28 b5 2f fd; 5x 2a 4d 18 is a frame to be skipped, with its length in the next 4 bytes
    header   2-14
    block    3   last (1 bit), type (2 bits), size (21 bits); then as many bytes, or one that is repeated (type 1)
    ...
    checksum 4   if the header says so
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

STEP_BYTES = 1024 * 1024

_BLOCK_BYTES_MAX = 128 * 1024
_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_SINGLE_SEGMENT = 0x20
_CHECKSUM = 0x04
_REPEATED = 1


class PieceCounter(Protocol):
    def begin_piece(self) -> None:
        """Raises if there are too many."""
        ...


def steps_of_frame(data: memoryview, position: int, counter: PieceCounter) -> Iterator[int]:
    """The positions at which to stop, with the end of the frame as the last; about `STEP_BYTES` of output in between.

    Every block counts as a piece. Raises IndexError if the frame is incomplete. The decompressor finds all other
    errors; for any input, no position is behind its end.
    """
    if data[position + 1 : position + 4] == _SKIPPABLE_MAGIC:
        counter.begin_piece()
        end = position + 8 + int.from_bytes(data[position + 4 : position + 8], "little")
        yield _within(data, end)
        return
    descriptor = data[position + 4]
    at = position + 5 + _header_bytes(descriptor)
    expected = 0
    last = 0
    while not last:
        counter.begin_piece()
        word = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        last = word & 1
        size = word >> 3
        if word >> 1 & 3 == _REPEATED:
            at += 4
        else:
            at += 3 + size
        expected += _BLOCK_BYTES_MAX
        if expected >= STEP_BYTES and not last:
            expected = 0
            yield _within(data, at)
    yield _within(data, at + 4 if descriptor & _CHECKSUM else at)


def _header_bytes(descriptor: int) -> int:
    """The size of the fields after the descriptor: window, dictionary id and content size."""
    size = _DICTIONARY_ID_BYTES[descriptor & 3] + _CONTENT_SIZE_BYTES[descriptor >> 6]
    if not descriptor & _SINGLE_SEGMENT:
        return size + 1
    return size if descriptor >> 6 else size + 1


def _within(data: memoryview, end: int) -> int:
    if end > len(data):
        raise IndexError
    return end
