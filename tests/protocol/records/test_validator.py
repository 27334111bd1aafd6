"""Validation of produced batches: every reason to refuse one, with Kafka's error and the records at fault."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol import records
from quire.protocol.errors import ErrorCode
from quire.protocol.records import (
    BatchHeader,
    Compression,
    InvalidRecords,
    Record,
    build_batch,
    check_crc,
    compress,
    read_header,
    validate,
)
from quire.protocol.records.checksum import crc32c
from quire.protocol.records.expansion import Expansion
from quire.protocol.records.validator import MAX_RECORD_ERRORS
from tests.protocol.records.raw_batches import patient, raw_batch, raw_record, record_lists

pytestmark = pytest.mark.usefixtures("native")

NOW = 1_000_000
HOUR = 3_600_000
CODECS = list(Compression)


def check(data: bytes | bytearray, **options: Any) -> list[BatchHeader]:
    """The result of `validate`, which must accept everything that the fast path for plain batches accepts."""
    plain = plain_header(data, **options)
    before = bytes(data)
    try:
        headers = validate(memoryview(data), **({"max_batch_bytes": 10**6, "now_ms": NOW} | options))
    except InvalidRecords:
        assert plain is None
        raise
    assert plain is None or ([plain], before) == (headers, data)
    return headers


def plain_header(
    data: bytes | bytearray,
    max_batch_bytes: int = 10**6,
    now_ms: int = NOW,
    require_key: bool = False,
    timestamp_before_max_ms: int = 2**63 - 1,
    timestamp_after_max_ms: int = 2**63 - 1,
    **_: Any,
) -> BatchHeader | None:
    return records.check_plain(
        memoryview(data), max_batch_bytes, require_key, now_ms, timestamp_before_max_ms, timestamp_after_max_ms
    )


def refused(data: bytes | bytearray, **options: Any) -> InvalidRecords:
    with pytest.raises(InvalidRecords) as caught:
        check(data, **options)
    return caught.value


def batch_of(raw_records: Sequence[bytes], compression: Compression = Compression.NONE, **fields: Any) -> bytearray:
    section = bytes(compress(compression, b"".join(raw_records)))
    return raw_batch(section, len(raw_records), **({"attributes": int(compression)} | fields))


@patient
@given(record_lists, st.sampled_from(Compression))
def test_batches_that_were_built_properly_are_accepted(records: list[Record], compression: Compression) -> None:
    batch = build_batch(records, compression=compression, producer_id=5, producer_epoch=0, base_sequence=0)
    before = bytes(batch)
    assert check(batch) == [read_header(batch)]
    assert batch == before


def test_plain_bytearray_is_taken() -> None:
    batch = build_batch([Record(value=b"x")])
    assert validate(batch, max_batch_bytes=1000, now_ms=NOW)[0].record_count == 1


# --- The fast path


@patient
@given(record_lists, st.sampled_from([(-1, False), (5, False), (5, True)]))
def test_plain_batches_take_the_short_way(produced: list[Record], producer: tuple[int, bool]) -> None:
    producer_id, transactional = producer
    for record in produced:
        record.timestamp = min(record.timestamp, 2**61)
    if produced[0].timestamp < 0:
        produced[0].timestamp = 0
    batch = build_batch(
        produced, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=transactional
    )
    assert plain_header(batch) == read_header(batch)


@patient
@given(record_lists, st.integers(0, 10**6), st.integers(0, 255), st.booleans())
def test_the_short_way_accepts_nothing_that_the_long_one_refuses(
    produced: list[Record], position: int, value: int, seal: bool
) -> None:
    batch = build_batch(produced)
    batch[position % len(batch)] = value
    if seal:
        batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    with suppress(InvalidRecords):
        check(batch, timestamp_before_max_ms=HOUR, timestamp_after_max_ms=HOUR)
        check(batch)


@pytest.mark.parametrize(
    ("now_ms", "before_max_ms", "after_max_ms"),
    [(2**62, HOUR, HOUR), (NOW, 2**63 - 1, 2**63 - 1), (NOW, 2**62 + 1, 2**62), (2**62 - 1, 0, 2**63 - 1)],
)
def test_distances_of_any_size_overflow_nothing(now_ms: int, before_max_ms: int, after_max_ms: int) -> None:
    limits = {"now_ms": now_ms, "timestamp_before_max_ms": before_max_ms, "timestamp_after_max_ms": after_max_ms}
    for timestamp in (0, NOW, 2**61, 2**62 - 1, 2**62, 2**63 - 1):
        with suppress(InvalidRecords):
            check(build_batch([Record(timestamp=timestamp), Record(timestamp=NOW)]), **limits)


# --- The batch as a whole


def test_nothing_at_all_is_refused() -> None:
    assert refused(b"").code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("kept", [1, 20, 60, 61, 70])
def test_batch_that_is_cut_off_is_refused(kept: int) -> None:
    error = refused(build_batch([Record(value=b"value")])[:kept])
    assert (error.code, error.record_errors) == (ErrorCode.CORRUPT_MESSAGE, [])


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused(magic: int) -> None:
    batch = build_batch([Record()])
    batch[16] = magic
    assert refused(batch).code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_second_batch_is_refused_unless_allowed() -> None:
    both = build_batch([Record()]) + build_batch([Record(), Record()])
    assert refused(both).code == ErrorCode.INVALID_RECORD
    assert [header.record_count for header in check(both, allow_multiple=True)] == [1, 2]


def test_faults_of_a_second_batch_are_found() -> None:
    both = build_batch([Record()]) + build_batch([Record()])
    both[-1] ^= 1
    assert refused(both, allow_multiple=True).code == ErrorCode.CORRUPT_MESSAGE
    assert refused(both[:-5], allow_multiple=True).code == ErrorCode.CORRUPT_MESSAGE
    assert refused(both[:90], allow_multiple=True).code == ErrorCode.CORRUPT_MESSAGE


def test_size_is_limited_exactly() -> None:
    batch = build_batch([Record(value=bytes(100))])
    assert check(batch, max_batch_bytes=len(batch))
    error = refused(batch, max_batch_bytes=len(batch) - 1)
    assert error.code == ErrorCode.MESSAGE_TOO_LARGE
    assert str(len(batch)) in error.message


def test_size_that_is_only_claimed_is_too_large_too() -> None:
    batch = build_batch([Record()])
    batch[8:12] = (2**31 - 1).to_bytes(4, "big")
    assert refused(batch).code == ErrorCode.MESSAGE_TOO_LARGE


def test_every_flipped_bit_is_found_except_in_the_leader_epoch() -> None:
    batch = build_batch([Record(timestamp=NOW, key=b"k", value=b"v", headers=[("h", b"x")])])
    for bit in range(len(batch) * 8):
        damaged = bytearray(batch)
        damaged[bit // 8] ^= 1 << bit % 8
        if 12 <= bit // 8 < 16:
            check(damaged)
        else:
            refused(damaged)


# --- The header


def test_base_offset_is_for_the_broker_to_assign() -> None:
    assert refused(batch_of([raw_record(0)], base_offset=5)).code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("count", [0, -1, -(2**31)])
def test_batch_without_records_is_refused(count: int) -> None:
    assert refused(raw_batch(b"", record_count=count, last_offset_delta=count - 1 if count > -(2**31) else 0)).code == (
        ErrorCode.INVALID_RECORD
    )


@pytest.mark.parametrize("last_offset_delta", [0, 2, -1, 2**31 - 1])
def test_last_offset_must_fit_the_count(last_offset_delta: int) -> None:
    batch = batch_of([raw_record(0), raw_record(1)], last_offset_delta=last_offset_delta)
    assert refused(batch).code == ErrorCode.INVALID_RECORD


def test_clients_write_no_control_batches() -> None:
    assert "control" in refused(build_batch([Record()], control=True)).message


def test_clients_set_no_delete_horizon() -> None:
    assert refused(batch_of([raw_record(0)], attributes=0x40)).code == ErrorCode.INVALID_RECORD


def test_clients_set_no_log_append_time() -> None:
    assert refused(build_batch([Record()], timestamp_type=1)).code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", [5, 6, 7])
@pytest.mark.parametrize("inspect", [True, False])
def test_unknown_codec_is_refused(codec: int, inspect: bool) -> None:
    error = refused(batch_of([raw_record(0)], attributes=codec), inspect_compressed=inspect)
    assert error.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(
    ("producer_id", "epoch", "sequence", "transactional", "accepted"),
    [
        (-1, -1, -1, False, True),
        (-1, -1, 0, False, True),  # some clients write this without idempotence
        (7, 0, 0, False, True),
        (7, 32767, 2**31 - 1, True, True),
        (7, -1, 0, False, False),
        (7, 0, -1, False, False),
        (-1, -1, -1, True, False),
    ],
)
def test_producer_fields_must_fit_each_other(
    producer_id: int, epoch: int, sequence: int, transactional: bool, accepted: bool
) -> None:
    batch = build_batch(
        [Record()],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    if accepted:
        assert check(batch)
    else:
        assert refused(batch).code == ErrorCode.INVALID_RECORD


# --- The records inside


@pytest.mark.parametrize("codec", CODECS)
def test_a_wrong_offset_is_reported_with_its_record(codec: Compression) -> None:
    error = refused(batch_of([raw_record(0), raw_record(1), raw_record(7)], codec))
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [2]
    assert error.record_errors[0][1] in error.message


@pytest.mark.parametrize("codec", CODECS)
def test_a_malformed_record_is_reported_with_its_index(codec: Compression) -> None:
    error = refused(batch_of([raw_record(0), b"\x02\0"], codec))
    assert (error.code, [index for index, _ in error.record_errors]) == (ErrorCode.INVALID_RECORD, [1])


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_behind_the_records_are_refused(codec: Compression) -> None:
    error = refused(batch_of([raw_record(0), raw_record(1) + raw_record(2)], codec))
    assert (error.code, [index for index, _ in error.record_errors]) == (ErrorCode.INVALID_RECORD, [1])


@pytest.mark.parametrize("codec", CODECS)
def test_every_record_without_a_key_is_reported_if_keys_are_required(codec: Compression) -> None:
    keys = [b"a", None, b"", None, b"b"]
    batch = batch_of([raw_record(index, key) for index, key in enumerate(keys)], codec)
    assert check(batch)
    error = refused(batch, require_key=True)
    assert (error.code, [index for index, _ in error.record_errors]) == (ErrorCode.INVALID_RECORD, [1, 3])
    assert "key" in error.record_errors[0][1]


@pytest.mark.parametrize("codec", CODECS)
def test_every_record_with_a_wrong_timestamp_is_reported(codec: Compression) -> None:
    deltas = [0, -HOUR, -HOUR - 1, HOUR, HOUR + 1, -1 - NOW]
    batch = batch_of(
        [raw_record(index, timestamp_delta=delta) for index, delta in enumerate(deltas)],
        codec,
        max_timestamp=NOW + HOUR + 1,
    )
    assert check(batch)
    error = refused(batch, timestamp_before_max_ms=HOUR, timestamp_after_max_ms=HOUR)
    assert (error.code, [index for index, _ in error.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [2, 4])
    assert f"{NOW + HOUR + 1} is not between {NOW - HOUR} and {NOW + HOUR}" in error.record_errors[1][1]


def test_record_errors_of_both_kinds_have_the_code_of_the_timestamp() -> None:
    batch = batch_of([raw_record(0, None), raw_record(1, timestamp_delta=HOUR + 1), raw_record(2)])
    error = refused(batch, require_key=True, timestamp_after_max_ms=HOUR)
    assert (error.code, [index for index, _ in error.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [0, 1])


def test_list_of_record_errors_is_bounded() -> None:
    count = MAX_RECORD_ERRORS + 10
    error = refused(batch_of([raw_record(index, None) for index in range(count)]), require_key=True)
    assert len(error.record_errors) == MAX_RECORD_ERRORS


@pytest.mark.parametrize("base", [-(2**63), -1, 0, 2**63 - 1])
@pytest.mark.parametrize("delta", [-(2**63), -1, 0, 2**63 - 1])
def test_timestamps_at_the_ends_of_their_range_do_not_overflow(base: int, delta: int) -> None:
    timestamp = base + delta
    batch = batch_of([raw_record(0, timestamp_delta=delta)], base_timestamp=base, max_timestamp=0)
    if timestamp == -1 or NOW - 2**63 < timestamp < 2**63:
        assert check(batch)[0].max_timestamp == max(timestamp, -1)
    else:
        assert refused(batch).code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", CODECS)
def test_a_wrong_max_timestamp_is_corrected_with_the_checksum(codec: Compression) -> None:
    raw_records = [raw_record(index, timestamp_delta=delta) for index, delta in enumerate([5, 70, -3])]
    batch = batch_of(raw_records, codec, max_timestamp=-1)
    (header,) = check(batch)
    assert header.max_timestamp == NOW + 70
    assert read_header(batch) == header
    check_crc(batch, header)


def test_records_without_timestamps_have_no_max_timestamp() -> None:
    batch = build_batch([Record(), Record()])
    assert check(batch, timestamp_before_max_ms=HOUR, timestamp_after_max_ms=HOUR)[0].max_timestamp == -1


# --- Compressed batches


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_batch_that_cannot_be_decompressed_is_refused(codec: Compression) -> None:
    error = refused(raw_batch(b"this is not compressed", attributes=int(codec)))
    assert error.code == ErrorCode.CORRUPT_MESSAGE
    assert codec.name.lower() in error.message


@pytest.mark.parametrize("codec", CODECS[1:])
def test_decompressed_size_is_limited(codec: Compression) -> None:
    section = raw_record(0, None, bytes(5000))
    batch = batch_of([section], codec)
    assert check(batch, expansion=Expansion(len(section)))
    assert refused(batch, expansion=Expansion(len(section) - 1)).code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS[1:])
def test_compressed_records_are_not_decompressed_unless_requested(codec: Compression) -> None:
    batch = raw_batch(b"this is not compressed", attributes=int(codec), max_timestamp=77)
    assert check(batch, inspect_compressed=False)[0].max_timestamp == 77


@patient
@given(st.binary(max_size=200), st.sampled_from(range(8)), st.integers(-1, 5))
def test_any_bytes_inside_a_sealed_batch_are_accepted_or_refused(section: bytes, attributes: int, count: int) -> None:
    try:
        check(raw_batch(section, count, attributes=attributes), require_key=True, timestamp_after_max_ms=HOUR)
    except InvalidRecords as error:
        assert error.message


@patient
@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_refused(data: bytes) -> None:
    refused(data)
