"""Codecs: output of other encoders is read, and damaged or too large input is refused."""

import gzip
import struct
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol.errors import ErrorCode
from quire.protocol.records import Compression, InvalidRecords, compress, decompress
from tests.protocol.records.raw_batches import patient

CODECS = [codec for codec in Compression if codec]
TEXT = b"".join(b"line %d of a text that repeats itself\n" % (number * 7919 % 1000) for number in range(5000))
XERIAL_HEADER = b"\x82SNAPPY\0" + b"\0\0\0\1" * 2


def refused(codec: Compression, data: bytes, limit: int = 10**7) -> InvalidRecords:
    with pytest.raises(InvalidRecords) as caught:
        decompress(codec, data, limit)
    return caught.value


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("size", [0, 1, 100, 32 * 1024, 32 * 1024 + 1, len(TEXT)])
def test_every_codec_gives_back_what_it_was_given(codec: Compression, size: int) -> None:
    assert decompress(codec, compress(codec, TEXT[:size])) == TEXT[:size]


@patient
@given(st.sampled_from(Compression), st.binary(max_size=500), st.integers(1, 40))
def test_every_codec_gives_back_any_bytes(codec: Compression, data: bytes, times: int) -> None:
    assert decompress(codec, compress(codec, data * times)) == data * times


@pytest.mark.parametrize("codec", CODECS)
def test_views_are_taken_as_bytes_are(codec: Compression) -> None:
    compressed = compress(codec, memoryview(b"xx" + TEXT)[2:])
    assert decompress(codec, memoryview(b"x" + compressed)[1:]) == TEXT


@pytest.mark.parametrize("codec", CODECS)
def test_limit_is_exact(codec: Compression) -> None:
    compressed = bytes(compress(codec, TEXT))
    assert decompress(codec, compressed, len(TEXT)) == TEXT
    error = refused(codec, compressed, len(TEXT) - 1)
    assert error.code == ErrorCode.MESSAGE_TOO_LARGE
    assert str(len(TEXT) - 1) in error.message


def test_limit_holds_for_plain_records_too() -> None:
    assert decompress(Compression.NONE, b"abc", 3) == b"abc"
    assert refused(Compression.NONE, b"abc", 2).code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_input_is_refused(codec: Compression) -> None:
    compressed = bytes(compress(codec, TEXT[:1000]))
    for size in range(len(compressed)):
        # A xerial header without blocks is a whole stream of nothing, and so are whole leading blocks.
        if codec is Compression.SNAPPY and size == len(XERIAL_HEADER):
            continue
        error = refused(codec, compressed[:size])
        assert error.code == ErrorCode.CORRUPT_MESSAGE
        assert codec.name.lower() in error.message


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"\1", b"garbage", b"\xff" * 100, bytes(100)])
def test_garbage_is_refused(codec: Compression, data: bytes) -> None:
    assert refused(codec, data).code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_garbage_behind_the_end_is_refused(codec: Compression) -> None:
    assert refused(codec, bytes(compress(codec, TEXT)) + b"garbage").code == ErrorCode.CORRUPT_MESSAGE


@patient
@given(st.sampled_from(CODECS), st.integers(0, 10**6), st.integers(1, 255))
def test_damage_is_an_error_of_ours_or_goes_unnoticed(codec: Compression, position: int, change: int) -> None:
    damaged = bytearray(compress(codec, TEXT[:2000]))
    damaged[position % len(damaged)] ^= change
    try:
        decompress(codec, damaged, 10**6)
    except InvalidRecords as error:
        assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


def test_there_are_no_other_codecs() -> None:
    for codec in (-1, 5, 6, 7):
        with pytest.raises(InvalidRecords) as caught:
            Compression.of(codec)
        assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_gzip_may_have_several_members() -> None:
    assert (
        decompress(Compression.GZIP, gzip.compress(TEXT) + gzip.compress(b"") + gzip.compress(b"end")) == TEXT + b"end"
    )


def test_gzip_may_have_thousands_of_members() -> None:
    assert decompress(Compression.GZIP, gzip.compress(b"ab") * 20_000) == b"ab" * 20_000


def test_gzip_without_its_header_is_refused() -> None:
    assert refused(Compression.GZIP, zlib.compress(TEXT)).code == ErrorCode.CORRUPT_MESSAGE


def snappy_block(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def xerial(*blocks: bytes) -> bytes:
    return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def test_snappy_may_be_one_plain_block() -> None:
    assert decompress(Compression.SNAPPY, snappy_block(TEXT)) == TEXT


def test_snappy_may_have_xerial_blocks_of_any_size() -> None:
    data = xerial(snappy_block(TEXT), snappy_block(b""), snappy_block(b"end"))
    assert decompress(Compression.SNAPPY, data) == TEXT + b"end"


def test_snappy_may_be_several_xerial_streams() -> None:
    data = xerial(snappy_block(b"one ")) + xerial(snappy_block(b"two"))
    assert decompress(Compression.SNAPPY, data) == b"one two"


def test_snappy_is_written_as_java_writes_it() -> None:
    data = bytes(compress(Compression.SNAPPY, TEXT))
    assert data.startswith(XERIAL_HEADER)
    (size,) = struct.unpack_from(">i", data, len(XERIAL_HEADER))
    block = data[len(XERIAL_HEADER) + 4 :][:size]
    assert bytes(cramjam.snappy.decompress_raw(block)) == TEXT[: 32 * 1024]


@pytest.mark.parametrize("size", [0, -1, 2**31 - 1])
def test_snappy_block_with_an_impossible_length_is_refused(size: int) -> None:
    data = XERIAL_HEADER + struct.pack(">i", size) + snappy_block(b"abc")
    assert refused(Compression.SNAPPY, data).code == ErrorCode.CORRUPT_MESSAGE


def test_snappy_header_cut_off_between_streams_is_refused() -> None:
    assert (
        refused(Compression.SNAPPY, xerial(snappy_block(b"one")) + XERIAL_HEADER[:12]).code == ErrorCode.CORRUPT_MESSAGE
    )


def lz4_frame(data: bytes, **options: object) -> bytes:
    frame: bytes = lz4.frame.compress(data, **({"block_linked": False} | options))
    return frame


def test_lz4_may_hold_several_frames() -> None:
    assert decompress(Compression.LZ4, lz4_frame(TEXT) + lz4_frame(b"") + lz4_frame(b"end")) == TEXT + b"end"


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("checksums", [True, False])
def test_lz4_may_have_any_block_size_checksums_and_content_size(block_size: int, checksums: bool) -> None:
    data = lz4_frame(
        TEXT * 10, block_size=block_size, store_size=checksums, content_checksum=checksums, block_checksum=checksums
    )
    assert decompress(Compression.LZ4, data) == TEXT * 10


def test_lz4_checksum_is_checked() -> None:
    data = bytearray(lz4_frame(TEXT, content_checksum=True))
    data[-1] ^= 1
    assert refused(Compression.LZ4, bytes(data)).code == ErrorCode.CORRUPT_MESSAGE


def test_lz4_with_linked_blocks_is_refused_because_consumers_cannot_read_it() -> None:
    error = refused(Compression.LZ4, lz4.frame.compress(TEXT, block_linked=True))
    assert error.code == ErrorCode.CORRUPT_MESSAGE
    assert "depend on each other" in error.message


def test_lz4_is_written_as_java_writes_it() -> None:
    info = lz4.frame.get_frame_info(bytes(compress(Compression.LZ4, TEXT)))
    assert not info["block_linked"]
    assert info["block_size"] == 64 * 1024
    assert info["content_size"] == 0


def test_lz4_levels_are_kafkas() -> None:
    default = compress(Compression.LZ4, TEXT)
    assert compress(Compression.LZ4, TEXT, 9) == default
    assert len(compress(Compression.LZ4, TEXT, 17)) < len(default)


def zstd_frame_without_size(data: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(data) + compressor.flush()


def test_zstd_may_lack_its_content_size_and_hold_several_frames() -> None:
    frame = zstd_frame_without_size(TEXT)
    assert zstandard.frame_content_size(frame) == -1
    assert decompress(Compression.ZSTD, frame) == TEXT
    both = frame + zstd_frame_without_size(b"") + zstandard.ZstdCompressor().compress(b"end")
    assert decompress(Compression.ZSTD, both) == TEXT + b"end"


def test_zstd_may_have_skippable_frames() -> None:
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip"
    data = skippable + zstd_frame_without_size(TEXT) + skippable
    assert decompress(Compression.ZSTD, data) == TEXT


def test_zstd_may_have_the_window_of_its_highest_level() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=27)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    assert decompress(Compression.ZSTD, compressor.compress(TEXT) + compressor.flush()) == TEXT
