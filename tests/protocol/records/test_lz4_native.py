"""The blocks of lz4 frames: what the lz4 package accepts is accepted, with the same bytes, and nothing else."""

import random
from types import ModuleType

import lz4.block
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol.records import lz4_native
from tests.protocol.records.native_modules import interpreted
from tests.protocol.records.raw_batches import patient

WAYS = pytest.mark.parametrize(
    "native", [lz4_native, interpreted("records/lz4_native.py")], ids=["installed", "interpreted"]
)
BLOCK_BYTES = 64 * 1024
ENOUGH = 1 << 30
CANARY = 0xA5


def framed(block: bytes, *, plain: bool = False) -> bytes:
    return (len(block) | plain << 31).to_bytes(4, "little") + block


def compressed(data: bytes) -> bytes:
    block: bytes = lz4.block.compress(data, store_size=False)
    return block


def run(
    native: ModuleType, blocks: bytes, room: int = BLOCK_BYTES, limit: int = ENOUGH, filled: int = 0
) -> tuple[int, int, bytes]:
    """The result, the position, and the output behind what was there already; writes nothing behind the slack."""
    usable = filled + room + native.SLACK_BYTES
    buffer = bytearray([CANARY]) * (usable + 64)
    with memoryview(buffer) as view:
        status, position, size = native.decompress_blocks(blocks, 0, view[:usable], filled, limit, BLOCK_BYTES)
    assert set(buffer[:filled]) <= {CANARY}
    assert set(buffer[usable:]) == {CANARY}
    return status, position, bytes(buffer[filled:size])


def by_package(block: bytes) -> bytes | None:
    try:
        decompressed: bytes = lz4.block.decompress(block, uncompressed_size=BLOCK_BYTES)
    except lz4.block.LZ4BlockError:
        return None
    return decompressed


WORDS = [b"alpha ", b"beta", b"x" * 40, b"the-long-word-that-makes-matches-longer-than-sixteen ", b"\0", b"zy"]


def text(size: int, seed: int = 1) -> bytes:
    chosen = random.Random(seed)
    data = bytearray()
    while len(data) < size:
        data += chosen.choice(WORDS) if chosen.random() < 0.8 else chosen.randbytes(chosen.randint(1, 40))
    return bytes(data[:size])


@WAYS
@pytest.mark.parametrize("size", [1, 12, 13, 63, 64, 65, 200, 5000, BLOCK_BYTES - 1, BLOCK_BYTES])
@pytest.mark.parametrize("period", [1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 255, 256, 257, 300, 5000, None])
def test_every_distance_and_length_of_a_match_is_copied(native: ModuleType, size: int, period: int | None) -> None:
    data = text(size) if period is None else (random.Random(period).randbytes(period) * (size // period + 1))[:size]
    blocks = framed(compressed(data)) + bytes(4)
    assert run(native, blocks) == (native.COMPLETE, len(blocks), data)
    assert run(native, blocks, room=size, filled=7) == (native.COMPLETE, len(blocks), data)
    assert run(native, blocks, room=size - 1) == (native.NO_ROOM, 0, b"")


@WAYS
def test_blocks_follow_each_other_up_to_the_end_mark(native: ModuleType) -> None:
    parts = [text(BLOCK_BYTES), text(1000, 2), b"not compressed", text(300, 3)]
    blocks = b"".join(
        framed(part, plain=index == 2) if index == 2 else framed(compressed(part)) for index, part in enumerate(parts)
    )
    blocks += bytes(4)
    whole = b"".join(parts)
    assert run(native, blocks + b"more", room=len(whole)) == (native.COMPLETE, len(blocks), whole)


@WAYS
def test_a_full_output_can_be_continued_where_it_stopped(native: ModuleType) -> None:
    first, second = framed(compressed(text(1000))), framed(b"plain", plain=True)
    status, position, data = run(native, first + second + bytes(4), room=1003)
    assert (status, position, data) == (native.NO_ROOM, len(first), text(1000))
    assert run(native, first + second + bytes(4), room=1005)[0] == native.COMPLETE


@WAYS
def test_it_stops_at_the_block_behind_the_limit(native: ModuleType) -> None:
    block = framed(compressed(bytes(1000)))
    status, position, data = run(native, block * 50 + bytes(4), limit=2500)
    assert (status, position, len(data)) == (native.NO_ROOM, 3 * len(block), 3000)


@WAYS
@pytest.mark.parametrize("data", [text(5000), bytes(5000)])
def test_truncated_input_is_reported(native: ModuleType, data: bytes) -> None:
    blocks = framed(compressed(data)) + bytes(4)
    for size in range(len(blocks)):
        assert run(native, blocks[:size])[0] == native.CUT_OFF


LITERALS = b"\x50" + b"abcde"
BROKEN = {
    "a match before the beginning": b"\x10a\x02\x00" + LITERALS,
    "no literals at the end": b"\x10a\x01\x00",
    "too few literals at the end": b"\x10a\x01\x00\x40abcd",
    "literals that are not there": b"\xf0\x20abc",
    "literals whose length does not end": b"\xf0\xff\xff\xff",
    "a match whose length does not end": b"\x1fa\x01\x00\xff\xff\xff\xff\xff\xff",
    "half a distance": b"\x10a\x01",
    "more than a block": b"\x1fa\x01\x00" + b"\xff" * 258 + b"\0" + LITERALS,
    "a last match in the last twelve bytes": b"\x1fa\x01\x00" + b"\xff" * 256 + b"\xdf" + b"\x20ab\x01\x00" + LITERALS,
}


@WAYS
@pytest.mark.parametrize("name", BROKEN)
def test_broken_blocks_are_refused(native: ModuleType, name: str) -> None:
    block = BROKEN[name]
    assert by_package(block) is None
    assert run(native, framed(block) + bytes(4))[0] == native.BROKEN


def test_a_match_at_no_distance_is_refused() -> None:
    """The package reads bytes there that were never written."""
    block = b"\x10a\x00\x00" + LITERALS
    assert run(lz4_native, framed(block) + bytes(4))[0] == (
        lz4_native.BROKEN if lz4_native.COMPILED else lz4_native.COMPLETE
    )


@WAYS
def test_a_block_larger_than_its_frame_allows_is_refused(native: ModuleType) -> None:
    for plain in (True, False):
        blocks = framed(bytes(BLOCK_BYTES + 1), plain=plain)
        assert run(native, blocks, room=2 * BLOCK_BYTES)[0] == native.BROKEN


def without_distance(block: bytes) -> bool:
    """Whether a sequence has the distance 0, for which the package reads bytes that were never written."""
    at = 0
    while at < len(block):
        token = block[at]
        at += 1
        literals = token >> 4
        if literals == 15:
            literals, at = longer(block, literals, at)
        at += literals
        if block[at : at + 2] == bytes(2):
            return True
        at += 2
        if token & 15 == 15:
            _, at = longer(block, 0, at)
    return False


def longer(block: bytes, length: int, at: int) -> tuple[int, int]:
    more = 255
    while more == 255 and at < len(block):
        more = block[at]
        length += more
        at += 1
    return length, at


@patient
@given(
    st.integers(1, 3000),
    st.integers(0, 100),
    st.lists(st.tuples(st.integers(0, 3000), st.sampled_from([0, 1, 15, 16, 240, 255])), max_size=4),
    st.integers(0, 100),
)
def test_damaged_blocks_are_read_as_the_package_reads_them(
    size: int, seed: int, damages: list[tuple[int, int]], cut: int
) -> None:
    block = bytearray(compressed(text(size, seed)))
    for position, value in damages:
        block[position % len(block)] = value
    damaged = bytes(block[: max(1, len(block) - max(0, cut - 80))])
    expected = by_package(damaged)
    status, _, data = run(lz4_native, framed(damaged) + bytes(4))
    if expected is None or without_distance(damaged):
        assert status == lz4_native.BROKEN
    else:
        assert (status, data) == (lz4_native.COMPLETE, expected)
