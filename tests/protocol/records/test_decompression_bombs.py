"""A few kilobytes that expand to gigabytes cost no more than the limit allows, in every codec."""

import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import cramjam
import lz4.frame
import pytest
import zstandard

from quire.protocol.errors import ErrorCode
from quire.protocol.records import Compression, InvalidRecords, decompress

MB = 1 << 20
XERIAL_HEADER = b"\x82SNAPPY\0" + b"\0\0\0\1" * 2


def gzip_bomb(size: int) -> bytes:
    compressor = zlib.compressobj(1, wbits=31)
    return b"".join(compressor.compress(bytes(MB)) for _ in range(size // MB)) + compressor.flush()


def snappy_bomb(size: int) -> bytes:
    return bytes(cramjam.snappy.compress_raw(bytes(size)))


def xerial_bomb(size: int) -> bytes:
    block = snappy_bomb(MB)
    return XERIAL_HEADER + (struct.pack(">i", len(block)) + block) * (size // MB)


def lz4_bomb(size: int) -> bytes:
    frame: bytes = lz4.frame.compress(bytes(size), block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX4MB)
    return frame


def zstd_bomb(size: int) -> bytes:
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    return b"".join(compressor.compress(bytes(MB)) for _ in range(size // MB)) + compressor.flush()


BOMBS: dict[str, tuple[Compression, Callable[[int], bytes]]] = {
    "gzip": (Compression.GZIP, gzip_bomb),
    "gzip of many members": (Compression.GZIP, lambda size: gzip_bomb(MB) * (size // MB)),
    "snappy": (Compression.SNAPPY, snappy_bomb),
    "snappy of many blocks": (Compression.SNAPPY, xerial_bomb),
    "lz4": (Compression.LZ4, lz4_bomb),
    "lz4 of many frames": (Compression.LZ4, lambda size: lz4_bomb(MB) * (size // MB)),
    "zstd": (Compression.ZSTD, zstd_bomb),
    "zstd of many frames": (Compression.ZSTD, lambda size: zstd_bomb(MB) * (size // MB)),
}

MEASURE = """
import re, sys
from quire.protocol.records import Compression, InvalidRecords, decompress

def peak_kb():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1])

codec = Compression[sys.argv[1]]
with open(sys.argv[2], "rb") as file:
    bomb = file.read()
try:
    decompress(codec, b"")  # imports the library
except InvalidRecords:
    pass
before = peak_kb()
outcome = "NONE"
try:
    decompress(codec, bomb, int(sys.argv[3]))
except InvalidRecords as error:
    outcome = error.code.name
print(outcome, (peak_kb() - before) * 1024)
"""


def decompress_elsewhere(codec: Compression, bomb: bytes, limit: int, folder: Path) -> tuple[str, int]:
    """The error's name, and by how many bytes the peak resident memory of a new process grew, libraries included."""
    file = folder / "bomb"
    file.write_bytes(bomb)
    command = [sys.executable, "-c", MEASURE, codec.name, str(file), str(limit)]
    code, growth_bytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return code, int(growth_bytes)


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_costs_no_more_memory_than_the_limit_allows(name: str, tmp_path: Path) -> None:
    codec, make = BOMBS[name]
    limit = 8 * MB
    code, growth_bytes = decompress_elsewhere(codec, make(256 * MB), limit, tmp_path)
    assert code == "MESSAGE_TOO_LARGE"
    # The bytes so far, the same once more while their buffer grows, one step ahead, and the codec's own window.
    assert growth_bytes < 4 * limit


def test_the_same_bytes_cost_their_size_where_the_limit_allows_it(tmp_path: Path) -> None:
    code, growth_bytes = decompress_elsewhere(Compression.ZSTD, zstd_bomb(128 * MB), 128 * MB, tmp_path)
    assert code == "NONE"
    assert growth_bytes >= 128 * MB


def lz4_frame_claiming(size: int) -> bytes:
    context = lz4.frame.create_compression_context()
    header: bytes = lz4.frame.compress_begin(context, source_size=size, block_linked=False)
    return header + bytes(4)


CLAIMS = {
    "snappy": (Compression.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"abc"),
    "xerial": (Compression.SNAPPY, XERIAL_HEADER + struct.pack(">i", 8) + b"\xff\xff\xff\xff\x0f" + b"abc"),
    "lz4": (Compression.LZ4, lz4_frame_claiming(2**40)),
    "zstd": (Compression.ZSTD, b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**40) + b"\x01\0\0"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_size_that_is_only_claimed_is_not_believed(name: str) -> None:
    codec, data = CLAIMS[name]
    with pytest.raises(InvalidRecords) as caught:
        decompress(codec, data)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
