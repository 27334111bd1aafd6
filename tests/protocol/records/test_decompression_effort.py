"""What is compressed in countless tiny pieces costs no more time than the limit allows, in every codec."""

import struct
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import pytest
import zstandard

from quire.protocol.errors import ErrorCode
from quire.protocol.records import Compression, InvalidRecords, decompress
from quire.protocol.records.compression import decompress_to
from quire.protocol.records.expansion import Expansion, TakesLongError
from quire.protocol.records.output import PIECE_BYTES, Output

XERIAL_HEADER = b"\x82SNAPPY\0" + b"\0\0\0\1" * 2
ZSTD_EMPTY = zstandard.ZstdCompressor().compress(b"")
LIMIT = 64 * 1024


def snappy_block(data: bytes) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(data))
    return struct.pack(">i", len(block)) + block


def lz4_frame(data: bytes) -> bytes:
    frame: bytes = lz4.frame.compress(data, block_linked=False)
    return frame


PIECES: dict[str, tuple[Compression, Callable[[int], bytes]]] = {
    "gzip members": (Compression.GZIP, lambda count: zlib.compress(b"", wbits=31) * count),
    "snappy blocks": (Compression.SNAPPY, lambda count: XERIAL_HEADER + snappy_block(b"") * count),
    "snappy headers": (Compression.SNAPPY, lambda count: XERIAL_HEADER * count + snappy_block(b"")),
    "lz4 frames": (Compression.LZ4, lambda count: lz4_frame(b"") * count),
    "zstd frames": (Compression.ZSTD, lambda count: ZSTD_EMPTY * count),
    "zstd blocks": (Compression.ZSTD, lambda count: b"\x28\xb5\x2f\xfd\0\x58" + bytes(3) * (count - 1) + b"\1\0\0"),
    "skipped zstd frames": (Compression.ZSTD, lambda count: b"\x50\x2a\x4d\x18\0\0\0\0" * (count - 1) + ZSTD_EMPTY),
}


@pytest.mark.parametrize("name", PIECES)
def test_as_many_empty_pieces_are_read_as_the_limit_pays_for(name: str) -> None:
    codec, make = PIECES[name]
    assert decompress(codec, make(LIMIT // PIECE_BYTES), LIMIT) == b""
    with pytest.raises(InvalidRecords, match=f"counting each compressed piece as {PIECE_BYTES}") as caught:
        decompress(codec, make(LIMIT // PIECE_BYTES + 2), LIMIT)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("name", PIECES)
def test_empty_pieces_use_up_the_room_of_a_request(name: str) -> None:
    codec, make = PIECES[name]
    expansion = Expansion(LIMIT)
    expansion.decompress(codec, make(LIMIT // PIECE_BYTES - 1))
    assert expansion.left_bytes <= 3 * PIECE_BYTES
    with pytest.raises(
        InvalidRecords, match=f"counting each compressed piece as {PIECE_BYTES}; send smaller batches"
    ) as caught:
        expansion.decompress(codec, make(LIMIT // PIECE_BYTES - 1))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_pieces_of_the_usual_size_cost_what_comes_out_of_them(codec: Compression) -> None:
    piece = bytes(range(256)) * 128
    pieces = {
        Compression.GZIP: zlib.compress(piece, wbits=31) * 10,
        Compression.SNAPPY: XERIAL_HEADER + snappy_block(piece) * 10,
        Compression.LZ4: lz4_frame(piece) * 10,
        Compression.ZSTD: zstandard.ZstdCompressor().compress(piece) * 10,
    }
    output = Output(10 * len(piece))
    decompress_to(output, codec, pieces[codec])
    assert output.view() == 10 * piece
    assert output.cost_bytes == 10 * len(piece)


def test_what_takes_long_is_left_for_a_job_and_costs_nothing_yet() -> None:
    compressed = zlib.compress(bytes(5000), wbits=31)
    expansion = Expansion(at_once_bytes=9000)
    assert expansion.decompress(Compression.GZIP, compressed) == bytes(5000)
    left_bytes = expansion.left_bytes
    with pytest.raises(TakesLongError):
        expansion.decompress(Compression.GZIP, compressed)
    with pytest.raises(TakesLongError):
        expansion.take_at_once(4001)
    expansion.take_at_once(4000)
    assert expansion.left_bytes == left_bytes
    assert Expansion(left_bytes).decompress(Compression.GZIP, compressed) == bytes(5000)


def test_what_is_refused_at_once_is_not_left_for_a_job() -> None:
    expansion = Expansion(limit_bytes=4000, at_once_bytes=9000)
    with pytest.raises(InvalidRecords) as caught:
        expansion.decompress(Compression.GZIP, zlib.compress(bytes(5000), wbits=31))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert expansion.left_bytes == 0
