"""Decompressing a zstd frame in steps: to its end, a little at a time."""

import random

import pytest
import zstandard

from quire.protocol.records.zstd_frames import STEP_BYTES, steps_of_frame

TEXT = b"".join(b"line %d of a text that repeats itself\n" % (number * 7919 % 1000) for number in range(100_000))


class Pieces:
    count = 0

    def begin_piece(self) -> None:
        self.count += 1


def frames() -> list[bytes]:
    noise = random.Random(1).randbytes(300_000)
    made = []
    for data in (b"", b"x", TEXT[:1000], TEXT, bytes(5_000_000), noise + TEXT + noise):
        for level in (-5, 1, 19):
            for checksum in (False, True):
                compressor = zstandard.ZstdCompressor(level=level, write_checksum=checksum)
                streaming = compressor.compressobj()
                made += [compressor.compress(data), streaming.compress(data) + streaming.flush()]
    return made


def test_the_last_step_is_the_end_of_the_frame_even_if_data_follows() -> None:
    for frame in frames():
        data = memoryview(b"before" + frame + b"\x28\xb5\x2f\xfdbehind")
        assert list(steps_of_frame(data, 6, Pieces()))[-1] == 6 + len(frame)


def test_little_more_than_a_step_comes_out_at_a_time() -> None:
    for frame in frames():
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        position = 0
        for end in steps_of_frame(memoryview(frame), 0, Pieces()):
            assert len(decompressor.decompress(frame[position:end])) <= STEP_BYTES
            position = end
        assert decompressor.eof


def test_every_block_counts() -> None:
    pieces = Pieces()
    frame = zstandard.ZstdCompressor().compress(bytes(5 * 128 * 1024))
    list(steps_of_frame(memoryview(frame), 0, pieces))
    assert pieces.count == 5


def test_truncation_anywhere_is_detected() -> None:
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT[:1000])
    for size in range(len(frame)):
        with pytest.raises(IndexError):
            list(steps_of_frame(memoryview(frame[:size]), 0, Pieces()))


@pytest.mark.parametrize("skipped", [0, 5])
def test_a_skippable_frame_is_one_step(skipped: int) -> None:
    frame = b"\x5f\x2a\x4d\x18" + skipped.to_bytes(4, "little") + bytes(skipped)
    assert list(steps_of_frame(memoryview(frame + b"more"), 0, Pieces())) == [len(frame)]
    with pytest.raises(IndexError):
        list(steps_of_frame(memoryview(frame[:-1]), 0, Pieces()))
