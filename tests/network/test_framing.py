"""Frames: assembled from any pieces, in bounded memory, without copying whole ones."""

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.network.buffers import SMALL_BYTES, BufferPool
from quire.network.framing import BadFrame, FrameReader
from tests.network.memory import frame

MB = 1024 * 1024


def reader(limit: int = 100 * MB, pool: BufferPool | None = None) -> FrameReader:
    return FrameReader(pool or BufferPool(1024 * MB), limit, lambda: 0.0)


def feed(frames: FrameReader, data: bytes, cuts: Sequence[int] = ()) -> list[bytes]:
    """Receives `data`, cut at the given positions and at the end of each buffer; returns the frames."""
    found = []
    edges = [0, *sorted(cuts), len(data)]
    for begin, end in itertools.pairwise(edges):
        while begin < end:
            room = frames.buffer()
            size = min(len(room), end - begin)
            assert size > 0
            room[:size] = data[begin : begin + size]
            begin += size
            payload = frames.next_frame(size)
            while payload is not None:
                found.append(bytes(payload))
                payload = frames.next_frame()
            assert frames.settle()
    return found


def payload(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def test_frames_torn_at_every_byte_arrive_whole() -> None:
    payloads = [payload(8, 1), payload(100, 2), payload(9, 3)]
    data = b"".join(map(frame, payloads))
    for cut in range(len(data) + 1):
        assert feed(reader(), data, [cut]) == payloads


def test_frames_arrive_one_byte_at_a_time() -> None:
    payloads = [payload(8, 1), payload(300, 2)]
    data = b"".join(map(frame, payloads))
    assert feed(reader(), data, range(1, len(data))) == payloads


@given(
    st.lists(st.sampled_from([8, 11, 700, 5000, SMALL_BYTES - 5, SMALL_BYTES - 4, SMALL_BYTES - 3, 40_000, 200_000])),
    st.lists(st.integers(0, 400_000), max_size=8),
)
def test_frames_cut_anywhere_are_reassembled(sizes: list[int], cuts: list[int]) -> None:
    payloads = [payload(size, i) for i, size in enumerate(sizes)]
    data = b"".join(map(frame, payloads))
    pool = BufferPool(1024 * MB)
    frames = reader(pool=pool)
    assert feed(frames, data, [cut for cut in cuts if cut < len(data)]) == payloads
    assert pool.in_use_bytes == 0
    assert not frames.incomplete


def test_several_frames_of_one_receive_are_views_of_one_buffer() -> None:
    frames = reader()
    data = frame(payload(20)) + frame(payload(30))
    room = frames.buffer()
    room[: len(data)] = data
    first, second = frames.next_frame(len(data)), frames.next_frame()
    assert first is not None
    assert second is not None
    assert first.obj is second.obj is room.obj
    assert not first.readonly


def test_a_large_frame_is_received_straight_into_memory_that_fits_it() -> None:
    frames = reader()
    announced = frame(payload(MB))
    feed(frames, announced[: SMALL_BYTES * 8 + 1])
    room = frames.buffer()
    assert len(room) >= len(announced) - (SMALL_BYTES * 8 + 1)


def test_announcing_much_and_sending_nothing_costs_a_small_buffer() -> None:
    pool = BufferPool(1024 * MB)
    frames = reader(pool=pool)
    feed(frames, (100 * MB).to_bytes(4, "big") + b"x" * 100)
    assert pool.in_use_bytes == 0
    assert len(frames.buffer()) < SMALL_BYTES


def test_memory_grows_with_what_was_sent_not_with_what_was_announced() -> None:
    pool = BufferPool(1024 * MB)
    frames = reader(pool=pool)
    data = (100 * MB).to_bytes(4, "big") + bytes(20 * MB)
    for begin in range(0, len(data), 100_000):
        feed(frames, data[begin : begin + 100_000])
        sent = begin + 100_000
        assert pool.in_use_bytes <= (8 if sent < MB else 2) * sent + 64 * 1024
    frames.release()
    assert pool.in_use_bytes == 0


def test_an_empty_buffer_is_returned() -> None:
    pool = BufferPool(1024 * MB)
    frames = reader(pool=pool)
    room = frames.buffer()
    assert feed(frames, frame(payload(2 * MB))) == [payload(2 * MB)]
    assert pool.in_use_bytes == 0
    assert pool.small() is room


def test_after_a_large_frame_the_next_one_reuses_its_buffer() -> None:
    pool = BufferPool(1024 * MB)
    frames = reader(pool=pool)
    request = frame(payload(MB))
    feed(frames, request)
    assert len(frames.buffer()) > len(request)
    assert feed(frames, request + request) == [payload(MB)] * 2
    assert feed(frames, frame(payload(50))) == [payload(50)]
    assert len(frames.buffer()) == SMALL_BYTES
    assert pool.in_use_bytes == 0


def test_expecting_a_large_frame_allocates_nothing() -> None:
    pool = BufferPool(1024 * MB, keep_bytes=0)
    frames = reader(pool=pool)
    feed(frames, frame(payload(MB)))
    assert len(frames.buffer()) == SMALL_BYTES


def test_a_small_frame_behind_a_large_one_does_not_keep_the_large_buffer() -> None:
    pool = BufferPool(1024 * MB)
    frames = reader(pool=pool)
    assert feed(frames, frame(payload(MB)) + frame(payload(50))[:20]) == [payload(MB)]
    assert pool.in_use_bytes == 0
    assert feed(frames, frame(payload(50))[20:]) == [payload(50)]


def test_a_little_of_the_next_frame_does_not_keep_a_large_buffer_that_is_not_read_into_for_now() -> None:
    pool = BufferPool(1024 * MB)
    frames = reader(pool=pool)
    first, second, third = payload(MB, 1), payload(50, 2), payload(MB, 3)
    feed(frames, frame(first))
    data = frame(first) + frame(second) + frame(third)[:2000]
    room = frames.buffer()
    room[: len(data)] = data
    assert bytes(frames.next_frame(len(data)) or b"") == first
    frames.shrink()
    assert pool.in_use_bytes == frames.large_bytes == 0
    assert bytes(frames.next_frame() or b"") == second
    assert frames.next_frame() is None
    assert frames.settle()
    assert feed(frames, frame(third)[2000:]) == [third]


def test_without_memory_for_a_large_frame_it_waits_and_loses_nothing() -> None:
    pool = BufferPool(MB)
    others = [pool.large(MB, MB, instead_of=pool.small()) for _ in range(2)]
    frames = reader(pool=pool)
    data = frame(payload(100_000))
    room = frames.buffer()
    room[:] = data[:SMALL_BYTES]
    assert frames.next_frame(SMALL_BYTES) is None
    assert not frames.settle()
    assert not frames.settle()
    for buffer in others:
        assert buffer is not None
        pool.give_back(buffer)
    assert frames.settle()
    assert feed(frames, data[SMALL_BYTES:]) == [payload(100_000)]


@pytest.mark.parametrize(
    ("length", "complaint"),
    [
        (-1, "negative"),
        (-(2**31), "negative"),
        (0, "cannot hold a request header"),
        (7, "cannot hold a request header"),
        (1001, "larger than socket.request.max.bytes=1000"),
        (2**31 - 1, "larger than socket.request.max.bytes=1000"),
        (int.from_bytes(b"GET ", "big"), "larger than"),
    ],
)
def test_lengths_that_cannot_be_are_refused_as_soon_as_they_are_known(length: int, complaint: str) -> None:
    with pytest.raises(BadFrame, match=complaint):
        feed(reader(limit=1000), length.to_bytes(4, "big", signed=True))


def test_the_largest_allowed_frame_passes() -> None:
    assert feed(reader(limit=1000), frame(payload(1000))) == [payload(1000)]


def test_a_modest_frame_never_waits_for_memory_once_it_has_begun_to_get_some() -> None:
    pool = BufferPool(4 * MB)
    readers = [reader(pool=pool) for _ in range(3)]
    data = frame(payload(MB))
    for frames in readers:
        feed(frames, data[:20_000])
    assert pool.in_use_bytes >= 3 * MB
    assert pool.large(MB, MB, instead_of=pool.small()) is not None
    assert pool.large(MB, MB, instead_of=pool.small()) is None
    for frames in readers:
        assert feed(frames, data[20_000:]) == [payload(MB)]
