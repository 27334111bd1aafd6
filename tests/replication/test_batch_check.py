"""The check of a produced batch: at once or in a job, with the same result, and never long at once."""

import pytest

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import (
    LOG_APPEND_TIME,
    Compression,
    InvalidRecords,
    Record,
    build_batch,
    check_crc,
    read_records,
)
from quire.protocol.records.expansion import Expansion
from quire.replication.batch_check import AT_ONCE_BYTES, BatchCheck
from quire.replication.settings import PartitionSettings

NOW_MS = 1_700_000_000_000
LARGE = PartitionSettings(max_message_bytes=1 << 30)


def batch(size: int, compression: Compression = Compression.NONE) -> bytearray:
    return build_batch([Record(0, NOW_MS, None, bytes(size))], compression=compression)


def at_once() -> Expansion:
    return Expansion(at_once_bytes=AT_ONCE_BYTES)


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("kept", [None, *Compression])
@pytest.mark.parametrize("append_time", [False, True])
def test_a_check_that_takes_long_has_the_same_result_in_a_job(
    source: Compression, kept: Compression | None, append_time: bool
) -> None:
    settings = LARGE._replace(compression=kept, log_append_time=append_time)
    check = BatchCheck(batch(10_000_000, source), settings, NOW_MS + 1)
    assert not check.run(at_once())
    assert check.run(Expansion())
    view, header = check.result()
    check_crc(view, header)
    assert header.compression is (source if kept is None else kept)
    assert (header.timestamp_type == LOG_APPEND_TIME, header.max_timestamp) == (append_time, NOW_MS + append_time)
    (record,) = read_records(view)
    assert record.value == bytes(10_000_000)


@pytest.mark.parametrize(
    ("size", "compression", "settings"),
    [
        (4_000_000, Compression.NONE, LARGE),
        (500_000, Compression.GZIP, LARGE),
        (20_000, Compression.NONE, LARGE._replace(compression=Compression.ZSTD)),
        (3000, Compression.NONE, LARGE._replace(compression=Compression.ZSTD, compression_level=22)),
        (500_000, Compression.LZ4, LARGE._replace(compression=Compression.NONE)),
    ],
)
def test_a_check_that_is_short_runs_at_once(size: int, compression: Compression, settings: PartitionSettings) -> None:
    expansion = at_once()
    assert BatchCheck(batch(size, compression), settings, NOW_MS).run(expansion)
    repeated = 0
    while BatchCheck(batch(size, compression), settings, NOW_MS).run(expansion):
        repeated += 1
        assert repeated < 20, "together they are long"


def test_an_error_is_raised_where_the_batch_is_needed() -> None:
    broken = batch(100)
    broken[-1] ^= 1
    check = BatchCheck(broken, LARGE, NOW_MS)
    assert check.run(at_once())
    with pytest.raises(InvalidRecords) as caught:
        check.result()
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_that_is_too_large_as_its_topic_stores_it_is_refused() -> None:
    settings = PartitionSettings(max_message_bytes=1000, compression=Compression.NONE)
    check = BatchCheck(batch(5000, Compression.ZSTD), settings, NOW_MS)
    assert check.run(at_once())
    with pytest.raises(ApiError) as caught:
        check.result()
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
