"""Records from batches: built batches are read back, and broken ones are one kind of error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol.errors import ErrorCode
from quire.protocol.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Compression,
    InvalidRecords,
    Record,
    build_batch,
    check_crc,
    find_timestamp,
    iterate_records,
    read_header,
    read_records,
)
from quire.protocol.records.reader import find_highest
from tests.protocol.records.raw_batches import patient, raw_batch, raw_record, record_lists

pytestmark = pytest.mark.usefixtures("native")


@patient
@given(record_lists, st.sampled_from(Compression), st.integers(0, 2**62))
def test_built_records_are_read_back(records: list[Record], compression: Compression, base_offset: int) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=compression)
    header = read_header(batch)
    check_crc(batch, header)
    assert header.compression is compression
    assert header.size == len(batch)
    assert header.max_timestamp == max(record.timestamp for record in records)
    read = read_records(batch)
    assert [record.offset for record in read] == list(range(base_offset, base_offset + len(records)))
    for record in read:
        record.offset = 0
    assert read == records


def test_records_of_several_batches_come_in_order() -> None:
    data = b"".join(
        build_batch([Record(value=b"%d" % offset), Record(value=b"!")], base_offset=offset, compression=compression)
        for offset, compression in zip((0, 2, 4, 6, 8), Compression, strict=True)
    )
    assert [record.offset for record in iterate_records(data)] == list(range(10))
    assert [record.offset for record in iterate_records(data[:-1])] == list(range(8))


def test_log_append_time_is_the_timestamp_of_all() -> None:
    batch = build_batch([Record(timestamp=1), Record(timestamp=9), Record(timestamp=5)], timestamp_type=LOG_APPEND_TIME)
    assert [record.timestamp for record in read_records(batch)] == [9, 9, 9]


def test_record_is_read_from_a_position_and_a_view() -> None:
    data = b"xyz" + build_batch([Record(value=b"here")]) + b"xyz"
    assert read_records(memoryview(data), 3)[0].value == b"here"


def test_empty_compacted_batch_has_no_records() -> None:
    assert read_records(raw_batch(b"", 0, last_offset_delta=9)) == []


def refused(data: bytes | bytearray, limit: int = 1000) -> InvalidRecords:
    with pytest.raises(InvalidRecords) as caught:
        read_records(data, limit=limit)
    return caught.value


def test_batch_that_is_cut_off_is_refused() -> None:
    assert refused(build_batch([Record(value=b"here")])[:-1]).code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("count", [-(2**31), -1, 0, 2, 2**31 - 1])
def test_wrong_record_count_is_refused(count: int) -> None:
    assert refused(raw_batch(raw_record(0), record_count=count)).code == ErrorCode.CORRUPT_MESSAGE


def test_unknown_codec_is_refused() -> None:
    assert refused(raw_batch(raw_record(0), attributes=7)).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("compression", [codec for codec in Compression if codec])
def test_reader_stops_at_its_limit(compression: Compression) -> None:
    batch = build_batch([Record(value=bytes(2000))], compression=compression)
    assert refused(batch, limit=1999).code == ErrorCode.MESSAGE_TOO_LARGE
    assert len(read_records(batch, limit=3000)) == 1


def test_records_compare_and_print_by_their_fields() -> None:
    record = Record(1, 2, b"key", b"value", [("name", b"x")])
    assert record == Record(1, 2, b"key", b"value", [("name", b"x")])
    for other in (Record(0, 2), Record(1, 3), Record(1, 2, b"k"), Record(1, 2, b"key"), Record(1, 2, b"key", b"value")):
        assert record != other
    assert record != "record"
    assert eval(repr(record)) == record
    assert Record().headers is not Record().headers


@patient
@given(
    record_lists,
    st.integers(0, 2**62),
    st.sampled_from([Compression.NONE, Compression.LZ4]),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    st.integers(-2, 6),
)
def test_a_timestamp_is_found_where_a_search_through_all_records_finds_it(
    records: list[Record],
    base_offset: int,
    compression: Compression,
    log_append_time: bool,
    timestamp: int,
    lowest: int,
) -> None:
    batch = build_batch(
        records, base_offset=base_offset, compression=compression, timestamp_type=LOG_APPEND_TIME * log_append_time
    )
    for asked in (timestamp, records[-1].timestamp, records[-1].timestamp + 1):
        expected = next(
            (
                (record.offset, record.timestamp)
                for record in read_records(batch)
                if record.timestamp >= asked and record.offset >= base_offset + lowest
            ),
            None,
        )
        assert find_timestamp(batch, read_header(batch), asked, base_offset + lowest) == expected


@patient
@given(
    record_lists,
    st.sampled_from(Compression),
    st.integers(0, 2**62),
    st.integers(-2, 20),
    st.sampled_from([CREATE_TIME, LOG_APPEND_TIME]),
)
def test_the_highest_timestamp_is_the_first_of_those_that_are_left(
    records: list[Record], compression: Compression, base_offset: int, lowest: int, timestamp_type: int
) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=compression, timestamp_type=timestamp_type)
    left = [record for record in read_records(batch) if record.offset >= base_offset + lowest]
    best = max(left, key=lambda record: record.timestamp, default=None)
    found = find_highest(batch, read_header(batch), base_offset + lowest)
    assert found == (None if best is None else (best.offset, best.timestamp))


def test_a_broken_record_has_no_highest_timestamp() -> None:
    section = raw_record(0, timestamp_delta=1) + raw_record(4, timestamp_delta=5)
    batch = raw_batch(section + b"\x02", 3, base_timestamp=100, base_offset=50)
    with pytest.raises(InvalidRecords, match="record 2 is broken") as caught:
        find_highest(batch, read_header(batch), 0)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    batch = raw_batch(section, 2, base_timestamp=100, base_offset=50)
    assert find_highest(batch, read_header(batch), 0) == (54, 105)
    assert find_highest(batch, read_header(batch), 55) is None


def test_a_timestamp_is_found_before_what_is_broken_and_not_behind_it() -> None:
    section = raw_record(0, timestamp_delta=1) + raw_record(4, timestamp_delta=5) + b"\x02"
    batch = raw_batch(section, 3, base_timestamp=100, base_offset=50)
    header = read_header(batch)
    assert find_timestamp(batch, header, 102, 0) == (54, 105)
    with pytest.raises(InvalidRecords, match="record 2 is broken") as caught:
        find_timestamp(batch, header, 106, 0)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("size", range(len(raw_record(0, timestamp_delta=5000))))
def test_a_record_that_is_cut_off_has_no_timestamp(size: int) -> None:
    batch = raw_batch(raw_record(0, timestamp_delta=5000)[:size], 1)
    with pytest.raises(InvalidRecords, match="record 0 is broken"):
        find_timestamp(batch, read_header(batch), 0, 0)


def test_a_compacted_batch_without_records_has_no_timestamp() -> None:
    batch = raw_batch(b"", 0, last_offset_delta=9)
    assert find_timestamp(batch, read_header(batch), 0, 0) is None
