"""The header of a batch: reading it, walking over batches, and what may change in it afterwards."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.records import (
    CREATE_TIME,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    Compression,
    InvalidRecords,
    Record,
    build_batch,
    check_crc,
    patch,
    read_header,
    read_records,
    set_max_timestamp,
    walk_batches,
)
from tests.protocol.records.raw_batches import raw_batch, raw_record

RECORDS = [Record(timestamp=1000, value=b"a"), Record(timestamp=1500, value=b"b"), Record(timestamp=1200, value=b"c")]


def refused(code: ErrorCode, data: bytes | bytearray) -> str:
    with pytest.raises(InvalidRecords) as caught:
        read_header(data)
    assert caught.value.code == code
    return caught.value.message


def test_header_is_read_at_a_position() -> None:
    data = b"xyz" + build_batch(RECORDS, base_offset=5)
    header = read_header(data, 3)
    assert (header.position, header.base_offset, header.end) == (3, 5, len(data))


def test_header_is_readable_without_its_records() -> None:
    batch = build_batch(RECORDS)
    assert read_header(batch[:HEADER_BYTES]).size == len(batch)


@pytest.mark.parametrize("size", range(HEADER_BYTES))
def test_less_than_a_header_is_refused(size: int) -> None:
    assert f"{size} are there" in refused(ErrorCode.CORRUPT_MESSAGE, build_batch(RECORDS)[:size])


@pytest.mark.parametrize("length", [48, 0, -1, -(2**31)])
def test_length_too_small_for_a_header_is_refused(length: int) -> None:
    batch = build_batch(RECORDS)
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    assert str(length) in refused(ErrorCode.CORRUPT_MESSAGE, batch)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_refused_by_name(magic: int) -> None:
    batch = build_batch(RECORDS)
    batch[16] = magic
    assert f"magic {magic}" in refused(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, batch)


def test_old_message_shorter_than_a_batch_header_is_recognised() -> None:
    old = bytes(8) + (14).to_bytes(4, "big") + bytes(4) + b"\x01\x00" + b"\xff" * 8
    refused(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, old)


@pytest.mark.parametrize("magic", [3, 127, 128, 255])
def test_unknown_magic_is_refused(magic: int) -> None:
    batch = build_batch(RECORDS)
    batch[16] = magic
    refused(ErrorCode.CORRUPT_MESSAGE, batch)
    refused(ErrorCode.CORRUPT_MESSAGE, batch[:40])


def test_attributes_are_decoded_separately() -> None:
    def header(attributes: int) -> BatchHeader:
        return read_header(raw_batch(raw_record(0), attributes=attributes))

    plain = header(0)
    assert plain.compression is Compression.NONE
    assert plain.timestamp_type == CREATE_TIME
    assert not (plain.is_transactional or plain.is_control or plain.has_delete_horizon)
    assert [header(codec).compression for codec in range(5)] == list(Compression)
    assert header(0x08).timestamp_type == LOG_APPEND_TIME
    assert header(0x10).is_transactional
    assert header(0x20).is_control
    assert header(0x40).has_delete_horizon


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_refused_when_asked_for(codec: int) -> None:
    header = read_header(raw_batch(raw_record(0), attributes=codec))
    with pytest.raises(InvalidRecords) as caught:
        _ = header.compression
    assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_sequence_numbers_wrap_around() -> None:
    header = read_header(build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert header.last_sequence == 0
    assert read_header(build_batch(RECORDS)).last_sequence == -1


def test_walk_finds_every_whole_batch() -> None:
    batches = [build_batch(RECORDS[:count], base_offset=count * 10) for count in (1, 2, 3)]
    whole = b"".join(batches)
    headers = walk_batches(whole)
    assert [header.base_offset for header in headers] == [10, 20, 30]
    assert [header.position for header in headers] == [0, len(batches[0]), len(batches[0]) + len(batches[1])]
    assert headers[-1].end == len(whole)
    assert walk_batches(whole, headers[1].position) == headers[1:]


def test_walk_leaves_out_a_batch_that_is_cut_off() -> None:
    first, second = build_batch(RECORDS), build_batch(RECORDS)
    for kept in range(len(second)):
        headers = walk_batches(first + second[:kept])
        assert [header.end for header in headers] == [len(first)]


def test_walk_refuses_bytes_that_are_not_a_batch() -> None:
    with pytest.raises(InvalidRecords, match=r"old message format \(magic 0\)") as caught:
        walk_batches(build_batch(RECORDS) + bytes(100))
    assert caught.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_patch_assigns_offset_and_epoch_without_breaking_the_seal() -> None:
    data = bytearray(b"xyz") + build_batch(RECORDS)
    patch(memoryview(data), 3, 2**40, 17)
    header = read_header(data, 3)
    assert (header.base_offset, header.leader_epoch) == (2**40, 17)
    check_crc(data, header)


@pytest.mark.parametrize("position", [17, 20, 21, 40, 60, 61, 75])
def test_changed_byte_breaks_the_seal(position: int) -> None:
    batch = build_batch(RECORDS)
    batch[position] ^= 1
    with pytest.raises(InvalidRecords) as caught:
        check_crc(batch, read_header(batch))
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_log_append_time_becomes_every_records_timestamp() -> None:
    data = bytearray(b"xyz") + build_batch(
        RECORDS, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )
    header = read_header(data, 3)
    set_max_timestamp(data, header, LOG_APPEND_TIME, 9999)
    assert read_header(data, 3) == header
    assert header.timestamp_type == LOG_APPEND_TIME
    assert header.is_transactional
    check_crc(data, header)
    assert [record.timestamp for record in read_records(data, 3)] == [9999, 9999, 9999]


def test_create_time_keeps_the_records_timestamps() -> None:
    batch = build_batch(RECORDS, timestamp_type=LOG_APPEND_TIME)
    header = read_header(batch)
    set_max_timestamp(batch, header, CREATE_TIME, 1500)
    check_crc(batch, read_header(batch))
    assert [record.timestamp for record in read_records(batch)] == [1000, 1500, 1200]


def test_headers_print_their_fields() -> None:
    text = repr(read_header(build_batch(RECORDS, base_offset=5)))
    assert text.startswith("BatchHeader(")
    assert "base_offset=5" in text
