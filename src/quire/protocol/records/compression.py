"""The compression codecs of batches; decompression has a limit.

Decompression stops as soon as the output exceeds `limit` bytes, so the memory that a few kilobytes from a client can
make a node allocate is proportional to `limit`, whatever size they claim. So is the time: data that is compressed in
many tiny pieces is refused too (`Output`). Each library is imported at the first use of its codec. The formats are
those of Java clients:

    gzip    any number of members, one after another
    snappy  xerial's blocks of 32 KB after a header; a plain snappy block is read too
    lz4     any number of frames, blocks independent of each other (other clients cannot read linked ones)
    zstd    any number of frames, with or without their content size
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from quire.protocol.errors import ErrorCode
from quire.protocol.records.invalid import InvalidRecords, corrupt
from quire.protocol.records.lz4_frames import decompress_lz4
from quire.protocol.records.output import Output, too_large
from quire.protocol.records.zstd_frames import steps_of_frame
from quire.seams.disk import Buffer

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024
"""The default limit: over a hundred times the default of message.max.bytes."""


class Compression(IntEnum):
    """The codec in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @staticmethod
    def of(codec: int) -> Compression:
        if not 0 <= codec < len(_KNOWN):
            raise InvalidRecords(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"There is no compression codec {codec}; use none, gzip, snappy, lz4 or zstd.",
            )
        return _KNOWN[codec]


_KNOWN = tuple(Compression)


def compress(codec: Compression, data: Buffer, level: int | None = None) -> Buffer:
    """Compresses `data` as one piece; `level` None is the codec's default, and snappy has no levels."""
    if codec is Compression.NONE:
        return data
    if codec is Compression.GZIP:
        return _compress_gzip(data, level)
    if codec is Compression.SNAPPY:
        return _compress_snappy(data)
    if codec is Compression.LZ4:
        return _compress_lz4(data, level)
    return _compress_zstd(data, level)


def decompress(codec: Compression, data: Buffer, limit: int = MAX_DECOMPRESSED_BYTES) -> Buffer:
    """Decompresses; raises `InvalidRecords`: CORRUPT_MESSAGE if broken, MESSAGE_TOO_LARGE if over `limit` bytes."""
    if codec is Compression.NONE:
        if len(data) > limit:
            raise too_large(limit)
        return data
    output = Output(limit)
    decompress_to(output, codec, data)
    return output.taken()


def decompress_to(output: Output, codec: Compression, data: Buffer) -> None:
    """As `decompress`, for a caller that counts the cost; `codec` is not NONE."""
    view = memoryview(data)
    if codec is Compression.GZIP:
        _decompress_gzip(view, output)
    elif codec is Compression.SNAPPY:
        _decompress_snappy(view, output)
    elif codec is Compression.LZ4:
        decompress_lz4(view, output)
    else:
        _decompress_zstd(view, output)


def _broken(codec: str, reason: object) -> InvalidRecords:
    return corrupt(f"The records of a batch cannot be decompressed as {codec}: {reason}.")


_GZIP_WINDOW_BITS = 31
_GZIP_FEED_BYTES = 4096
"""zlib copies the input after a member's end; with small pieces of input, thousands of small members stay cheap."""


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    import zlib

    return zlib.compress(data, -1 if level is None else level, wbits=_GZIP_WINDOW_BITS)


def _decompress_gzip(data: memoryview, output: Output) -> None:
    import zlib

    position = 0
    while True:
        output.begin_piece()
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        while not member.eof:
            piece = data[position : position + _GZIP_FEED_BYTES]
            if not piece:
                raise _broken("gzip", "it is cut off")
            try:
                output.add(member.decompress(piece, output.room_bytes + 1))
            except zlib.error as error:
                raise _broken("gzip", error) from None
            position += len(piece)
        position -= len(member.unused_data)
        if position == len(data):
            return


_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
_SNAPPY_MAX_RATIO = 22
"""Three bytes copy at most 64, so the output cannot be larger than this, whatever the length in front claims."""

_INT32 = Struct(">i")


def _compress_snappy(data: Buffer) -> bytearray:
    from cramjam import snappy

    out = bytearray(_XERIAL_HEADER)
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        out += _INT32.pack(len(block))
        out += block
    return out


def _decompress_snappy(data: memoryview, output: Output) -> None:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        _decompress_snappy_block(data, output)
        return
    position = 0
    while position < len(data):
        # Writers that append to what they wrote put a whole header between blocks.
        if data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            if position:
                output.begin_piece()
            position += len(_XERIAL_HEADER)
            continue
        if len(data) - position < _INT32.size:
            raise _broken("snappy", "it is cut off")
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 < size <= len(data) - position:
            raise _broken("snappy", f"a block has the impossible length {size}")
        _decompress_snappy_block(data[position : position + size], output)
        position += size
    if position != len(data):
        raise _broken("snappy", "it is cut off")


def _decompress_snappy_block(block: memoryview, output: Output) -> None:
    import cramjam

    output.begin_piece()
    try:
        claimed = cramjam.snappy.decompress_raw_len(block)
        if claimed > len(block) * _SNAPPY_MAX_RATIO:
            raise _broken("snappy", f"{len(block)} bytes claim to become {claimed}")
        if claimed > output.room_bytes:
            raise too_large(output.limit)
        with output.room(claimed) as room:
            produced = cramjam.snappy.decompress_raw_into(block, room)
        output.fill(output.size + produced)
    except cramjam.DecompressionError as error:
        raise _broken("snappy", error) from None


_LZ4_JAVA_DEFAULT_LEVEL = 9
_LZ4_MAX_LEVEL = 12


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    from lz4 import frame

    # Kafka's default level is 9, and means the fast compressor; its levels reach 17, the C library's 12.
    if level is None or level == _LZ4_JAVA_DEFAULT_LEVEL:
        level = 0
    compressed: bytes = frame.compress(
        data,
        compression_level=min(level, _LZ4_MAX_LEVEL),
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)


def _decompress_zstd(data: memoryview, output: Output) -> None:
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    position = 0
    while True:
        frame = decompressor.decompressobj()
        try:
            # The library has no limit on its output, so it gets a few blocks at a time.
            for end in steps_of_frame(data, position, output):
                output.add(frame.decompress(data[position:end]))
                position = end
        except zstandard.ZstdError as error:
            raise _broken("zstd", error) from None
        except IndexError:
            raise _broken("zstd", "it is cut off") from None
        if not frame.eof or frame.unused_data:
            raise _broken("zstd", "a frame does not end where its last block says")
        if position == len(data):
            return
