"""Records as Arrow columns: the same rows as decoding gives, in pieces of bounded size, and unreadable batches."""

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol.errors import ErrorCode
from quire.protocol.records import (
    LOG_APPEND_TIME,
    Compression,
    InvalidRecords,
    Record,
    build_batch,
    decode_batch,
    read_header,
    walk_batches,
)
from quire.protocol.records.arrow_columns import ArrowColumns, ArrowGatherer
from quire.protocol.records.batch import LOG_APPEND_TIME_BIT
from tests.protocol.records.raw_batches import headers, patient, raw_batch, raw_record

LATEST_MS = 9_223_372_036_854_775


class Row(NamedTuple):
    offset: int
    timestamp_us: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]] | None


def _field(ends: memoryview, data: memoryview, index: int) -> bytes:
    return bytes(data[ends[index] : ends[index + 1]])


def _bit(bits: memoryview, index: int) -> bool:
    return bool(bits[index >> 3] >> (index & 7) & 1)


def rows_of(columns: ArrowColumns) -> Iterator[Row]:
    """The rows, read from the buffers according to Arrow's specification."""
    types = [number for rows, number in columns.timestamp_types for _ in range(rows)]
    for row in range(columns.row):
        found = None
        if columns.with_headers and _bit(columns.header_bits, row):
            found = [
                (
                    _field(columns.name_ends, columns.name_data, at),
                    _field(columns.content_ends, columns.content_data, at) if _bit(columns.content_bits, at) else None,
                )
                for at in range(columns.header_ends[row], columns.header_ends[row + 1])
            ]
        yield Row(
            columns.offsets[row],
            columns.timestamps_us[row],
            types[row],
            _field(columns.key_ends, columns.key_data, row) if _bit(columns.key_bits, row) else None,
            _field(columns.value_ends, columns.value_data, row) if _bit(columns.value_bits, row) else None,
            found,
        )


def gather(batches: bytes, start: int = 0, end: int = 2**62, **options: Any) -> list[ArrowColumns]:
    gatherer = ArrowGatherer(start, end, **options)
    found = [columns for header in walk_batches(batches) for columns in gatherer.add(batches, header)]
    return found + list(gatherer.flush())


def all_rows(found: Iterable[ArrowColumns]) -> list[Row]:
    return [row for columns in found for row in rows_of(columns)]


def decoded(batches: bytes, start: int, end: int, with_headers: bool) -> list[Row]:
    return [
        Row(
            record.offset,
            record.timestamp * 1000,
            header.timestamp_type,
            record.key,
            record.value,
            [(name.encode(), content) for name, content in record.headers] or None if with_headers else None,
        )
        for header in walk_batches(batches)
        for record in decode_batch(batches, header)
        if start <= record.offset < end
    ]


records = st.builds(
    Record,
    timestamp=st.integers(-1, LATEST_MS),
    key=st.none() | st.binary(max_size=100),
    value=st.none() | st.binary(max_size=300),
    headers=headers,
)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    log, offset = b"", 0
    for content in draw(st.lists(st.lists(records, min_size=1, max_size=12), min_size=1, max_size=4)):
        offset += draw(st.integers(0, 3))
        compression = draw(st.sampled_from(Compression))
        timestamp_type = draw(st.sampled_from((0, LOG_APPEND_TIME)))
        log += build_batch(content, base_offset=offset, compression=compression, timestamp_type=timestamp_type)
        offset += len(content)
    return log


@patient
@given(
    log=logs(),
    start=st.integers(0, 30),
    size=st.integers(0, 30),
    with_headers=st.booleans(),
    room_bytes=st.integers(0, 4000),
)
def test_columns_equal_the_decoded_records_for_any_range(
    native: ModuleType, log: bytes, start: int, size: int, with_headers: bool, room_bytes: int
) -> None:
    found = gather(log, start, start + size, with_headers=with_headers, room_bytes=room_bytes)
    assert all_rows(found) == decoded(log, start, start + size, with_headers)
    assert all(columns.row for columns in found)


def test_a_batch_larger_than_the_room_comes_in_several_pieces(native: ModuleType) -> None:
    batch = bytes(build_batch([Record(value=bytes(1000)) for _ in range(100)], compression=Compression.ZSTD))
    found = gather(batch, room_bytes=10_600)
    assert [columns.row for columns in found] == [10] * 10
    assert max(columns.sizes.total_bytes for columns in found) <= 10_600


def test_many_small_batches_come_in_one_piece(native: ModuleType) -> None:
    log = b"".join(build_batch([Record(value=b"x")], base_offset=offset) for offset in range(50))
    assert [columns.row for columns in gather(log)] == [50]


def test_a_record_larger_than_the_room_comes_alone(native: ModuleType) -> None:
    large = bytes(10 * 1024 * 1024)
    batch = bytes(build_batch([Record(value=b"a"), Record(value=large), Record(value=b"b")]))
    found = gather(batch, room_bytes=1000)
    assert [[len(row.value or b"") for row in rows_of(columns)] for columns in found] == [[1], [len(large)], [1]]


def test_offsets_that_compaction_left_out_stay_left_out(native: ModuleType) -> None:
    section = raw_record(0) + raw_record(7) + raw_record(9)
    batch = bytes(raw_batch(section, 3, base_offset=100, last_offset_delta=12))
    assert [row.offset for row in all_rows(gather(batch))] == [100, 107, 109]
    assert [row.offset for row in all_rows(gather(batch, 101, 109))] == [107]


def test_log_append_time_replaces_the_timestamp_of_every_record(native: ModuleType) -> None:
    section = raw_record(0, timestamp_delta=2**62) + raw_record(1, timestamp_delta=-(2**62))
    batch = bytes(raw_batch(section, 2, attributes=LOG_APPEND_TIME_BIT, max_timestamp=1234))
    assert [(row.timestamp_us, row.timestamp_type) for row in all_rows(gather(batch))] == [(1_234_000, 1)] * 2


@pytest.mark.parametrize("timestamp", [LATEST_MS + 1, -LATEST_MS - 1, 2**63 - 1, -(2**63)])
def test_a_timestamp_that_microseconds_cannot_tell_is_refused(native: ModuleType, timestamp: int) -> None:
    for base, delta in ((timestamp, 0), (0, timestamp)):
        batch = bytes(raw_batch(raw_record(0, timestamp_delta=delta), 1, base_offset=5, base_timestamp=base))
        with pytest.raises(InvalidRecords, match=r"at offset 5 .* timestamp of record 0"):
            gather(batch)


@pytest.mark.parametrize(
    ("section", "count", "problem"),
    [
        (raw_record(0) + b"\x00", 1, "there are 1 bytes after the last record"),
        (raw_record(0)[:-1], 1, "record 0 is broken"),
        (raw_record(0), 2, "record 1 is broken"),
        (b"", 1, "record 0 is broken"),
        (raw_record(0) + b"\x02\x00", 2, "record 1 is broken"),
        (raw_record(0)[:-1] + b"\x7e", 1, "record 0 is broken"),
    ],
)
def test_records_that_do_not_fit_their_batch_are_refused(
    native: ModuleType, section: bytes, count: int, problem: str
) -> None:
    batch = bytes(raw_batch(section, count, base_offset=40))
    with pytest.raises(InvalidRecords, match=f"batch at offset 40 cannot be read: {problem}"):
        gather(batch)


@patient
@given(section=st.binary(max_size=60), count=st.integers(1, 4))
def test_any_bytes_are_read_or_refused_as_decoding_does(native: ModuleType, section: bytes, count: int) -> None:
    batch = bytes(raw_batch(section, count))
    try:
        expected = decode_batch(batch, read_header(batch))
    except InvalidRecords as refused:
        with pytest.raises(InvalidRecords) as caught:
            gather(batch)
        assert caught.value.code is refused.code
        return
    if all(-LATEST_MS <= record.timestamp <= LATEST_MS for record in expected):
        assert len(all_rows(gather(batch))) == len(expected)


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec is not Compression.NONE])
def test_broken_compression_is_refused_with_the_offset_of_its_batch(native: ModuleType, codec: Compression) -> None:
    batch = bytes(raw_batch(b"this is not compressed at all", 1, base_offset=77, attributes=int(codec)))
    with pytest.raises(InvalidRecords, match=r"batch at offset 77.*cannot be decompressed") as caught:
        gather(batch)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_that_becomes_too_large_is_refused(native: ModuleType) -> None:
    batch = bytes(build_batch([Record(value=bytes(100_000))], base_offset=9, compression=Compression.GZIP))
    with pytest.raises(InvalidRecords, match=r"batch at offset 9.*more than 1000 bytes"):
        gather(batch, limit=1000)


def test_steps_are_the_ends_of_equal_values(native: ModuleType) -> None:
    ends = memoryview(bytearray(16)).cast("i")
    native.fill_steps(ends, 5)
    assert ends.tolist() == [0, 5, 10, 15]
