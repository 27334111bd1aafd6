"""lz4 frames: the usual ones without the package, all others as the package reads them."""

import struct
from collections.abc import Callable

import lz4.frame
import pytest
from xxhash import xxh32_intdigest

from quire.protocol.errors import ErrorCode
from quire.protocol.records import InvalidRecords, lz4_frames
from quire.protocol.records.lz4_frames import decompress_lz4
from quire.protocol.records.output import Output

TEXT = b"".join(b"line %d of a text that repeats itself\n" % (number * 7919 % 1000) for number in range(5000))


def frame(data: bytes = TEXT, **options: object) -> bytes:
    made: bytes = lz4.frame.compress(data, **({"block_linked": False} | options))
    return made


def decompressed(data: bytes, limit: int = 10**7, scratch: bytearray | None = None) -> bytes:
    output = Output(limit, scratch)
    decompress_lz4(memoryview(data), output)
    return bytes(output.view())


def refused(data: bytes, limit: int = 10**7) -> InvalidRecords:
    with pytest.raises(InvalidRecords) as caught:
        decompressed(data, limit)
    return caught.value


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: memoryview, position: int, output: Output) -> int:
        raise AssertionError("the package was asked")

    monkeypatch.setattr(lz4_frames, "_frame_by_package", fail)


USUAL: dict[str, Callable[[], bytes]] = {
    "Kafka's": lambda: frame(block_size=4, store_size=False),
    "with its size": lambda: frame(store_size=True),
    "with a checksum": lambda: frame(content_checksum=True),
    "with both and large blocks": lambda: frame(content_checksum=True, block_size=7),
    "empty": lambda: frame(b""),
    "of random bytes": lambda: frame(struct.pack("<5000I", *(number * 2654435761 % 2**32 for number in range(5000)))),
}


@pytest.mark.usefixtures("no_package")
@pytest.mark.parametrize("name", USUAL)
def test_usual_frames_need_no_package(name: str) -> None:
    data = USUAL[name]()
    expected = lz4.frame.decompress(data)
    assert decompressed(data) == expected
    assert decompressed(data + data) == 2 * expected
    assert decompressed(data, scratch=bytearray(b"x" * 10**6)) == expected


def test_other_frames_are_read_by_the_package() -> None:
    skipped = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    assert decompressed(frame(block_checksum=True) + skipped + frame(b"end")) == TEXT + b"end"


def test_wrong_header_is_refused() -> None:
    for position in range(4, 7):
        data = bytearray(frame(store_size=False))
        data[position] ^= 0x80
        assert refused(bytes(data)).code is ErrorCode.CORRUPT_MESSAGE


def test_wrong_content_checksum_is_refused_and_so_is_a_missing_one() -> None:
    data = frame(content_checksum=True)
    assert "checksum" in refused(data[:-1] + bytes([data[-1] ^ 1])).message
    assert "cut off" in refused(data[:-1]).message


def test_a_size_that_is_only_claimed_is_refused() -> None:
    data = frame(b"abc", store_size=True)
    descriptor = data[4:6] + struct.pack("<Q", 4)
    claiming = data[:4] + descriptor + bytes([xxh32_intdigest(descriptor) >> 8 & 0xFF]) + data[15:]
    assert "size" in refused(claiming).message


def test_a_broken_block_is_refused() -> None:
    data = bytearray(frame(b"a" * 1000, store_size=False))
    data[12:14] = b"\xff\xff"
    assert refused(bytes(data)).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
def test_limit_holds_over_all_blocks(block_size: int) -> None:
    data = frame(bytes(3_000_000), block_size=block_size)
    assert decompressed(data, 3_000_000) == bytes(3_000_000)
    assert refused(data, 2_999_999).code is ErrorCode.MESSAGE_TOO_LARGE
    assert refused(data * 2, 5_999_999).code is ErrorCode.MESSAGE_TOO_LARGE


def test_large_blocks_of_a_small_frame_take_no_memory_that_they_do_not_fill() -> None:
    scratch = bytearray()
    assert decompressed(frame(TEXT[:1000], block_size=7), scratch=scratch) == TEXT[:1000]
    assert len(scratch) < 8192
