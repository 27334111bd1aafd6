"""How much the batches of one request may expand to, together."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.records import Compression, InvalidRecords, compress
from quire.protocol.records.expansion import FREE_BYTES, Expansion

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


@pytest.mark.parametrize("codec", CODECS)
def test_batches_take_of_the_requests_room_what_they_expand_to(codec: Compression) -> None:
    expansion = Expansion(1000)
    assert bytes(expansion.decompress(codec, compress(codec, b"x" * 600))) == b"x" * 600
    assert expansion.left_bytes == 400
    with pytest.raises(InvalidRecords) as refused:
        expansion.decompress(codec, compress(codec, b"x" * 600))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert expansion.left_bytes == 0


def test_a_small_batch_may_not_expand_beyond_reason() -> None:
    expansion = Expansion()
    bomb = compress(Compression.ZSTD, bytes(2 * FREE_BYTES))
    with pytest.raises(InvalidRecords) as refused:
        expansion.decompress(Compression.ZSTD, bomb)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
