"""Batches re-encoded for a topic's settings keep everything else."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.records import (
    LOG_APPEND_TIME,
    BatchHeader,
    Compression,
    InvalidRecords,
    Record,
    build_batch,
    check_crc,
    read_header,
    read_records,
    rewrite,
)

RECORDS = [Record(index, 1000 + index, b"key", b"value" * 50, [("name", b"x")]) for index in range(20)]


def produced(compression: Compression) -> tuple[bytes, BatchHeader]:
    data = b"xyz" + build_batch(
        RECORDS, compression=compression, producer_id=9, producer_epoch=1, base_sequence=5, transactional=True
    )
    return data, read_header(data, 3)


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", Compression)
def test_codec_changes_and_nothing_else(source: Compression, target: Compression) -> None:
    data, before = produced(source)
    rewritten = rewrite(data, before, compression=target)
    after = read_header(rewritten)
    check_crc(rewritten, after)
    assert after.compression is target
    assert read_records(rewritten) == RECORDS
    before.position, before.length, before.crc, before.attributes = 0, after.length, after.crc, after.attributes
    assert after == before
    assert after.is_transactional


def test_log_append_time_is_set_on_the_way() -> None:
    data, header = produced(Compression.GZIP)
    rewritten = rewrite(data, header, compression=Compression.ZSTD, append_time_ms=77)
    after = read_header(rewritten)
    check_crc(rewritten, after)
    assert (after.timestamp_type, after.max_timestamp) == (LOG_APPEND_TIME, 77)
    assert {record.timestamp for record in read_records(rewritten)} == {77}


def test_rewriting_is_bounded_too() -> None:
    data, header = produced(Compression.LZ4)
    with pytest.raises(InvalidRecords) as caught:
        rewrite(data, header, compression=Compression.NONE, limit=100)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
