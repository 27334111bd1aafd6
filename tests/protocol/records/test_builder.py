"""Batches from records: their header, and builders that know when they are full."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol.records import (
    HEADER_BYTES,
    BatchBuilder,
    Compression,
    Record,
    build_batch,
    read_header,
    read_records,
    seal_batch,
    validate,
)
from tests.protocol.records.raw_batches import patient, record_lists

pytestmark = pytest.mark.usefixtures("native")


def test_plain_batch_has_the_defaults_of_a_plain_producer() -> None:
    header = read_header(build_batch([Record(timestamp=5), Record(timestamp=3)]))
    assert (header.base_offset, header.leader_epoch, header.attributes) == (0, -1, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (header.base_timestamp, header.max_timestamp, header.last_offset_delta) == (5, 5, 1)


def test_a_batch_has_the_fields_it_was_built_with() -> None:
    header = read_header(
        build_batch(
            [Record()],
            base_offset=2**50,
            compression=Compression.ZSTD,
            leader_epoch=4,
            producer_id=2**60,
            producer_epoch=32767,
            base_sequence=2**31 - 1,
            transactional=True,
            control=True,
            timestamp_type=1,
        )
    )
    assert (header.base_offset, header.leader_epoch, header.attributes) == (2**50, 4, 0x3C)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**60, 32767, 2**31 - 1)


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_level_reaches_the_codec(compression: Compression) -> None:
    records = [Record(value=b"%d %d %d" % (index, index * 7919 % 1000, index * index)) for index in range(2000)]
    sizes = [len(build_batch(records, compression=compression, level=level)) for level in (1, 8)]
    assert sizes[1] < sizes[0]


def test_batch_without_records_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="a batch has at least one record"):
        build_batch([])
    with pytest.raises(AssertionError, match="a batch has at least one record"):
        BatchBuilder(1000).build()


@patient
@given(record_lists, st.sampled_from(Compression))
def test_builder_makes_what_building_at_once_makes(records: list[Record], compression: Compression) -> None:
    builder = BatchBuilder(10**6, compression)
    for record in records:
        assert builder.append(record.key, record.value, record.headers, record.timestamp)
    plain_size = builder.plain_size
    built = builder.build(producer_id=1, producer_epoch=2, base_sequence=3, transactional=True)
    assert plain_size == len(build_batch(records))
    assert built == build_batch(
        records, compression=compression, producer_id=1, producer_epoch=2, base_sequence=3, transactional=True
    )
    validate(built, max_batch_bytes=10**6, now_ms=0)


def test_builder_is_full_exactly_when_one_more_record_would_be_too_much() -> None:
    roomy = BatchBuilder(10**6)
    for _ in range(3):
        roomy.append(b"key", b"value")
    size = roomy.estimated_size
    assert size == len(roomy.build())

    exact, tight = BatchBuilder(size), BatchBuilder(size - 1)
    assert [exact.append(b"key", b"value") for _ in range(4)] == [True, True, True, False]
    assert [tight.append(b"key", b"value") for _ in range(3)] == [True, True, False]
    assert exact.count == 3
    assert len(read_records(exact.build())) == 3
    assert len(read_records(tight.build())) == 2


def test_record_that_did_not_fit_leaves_no_trace() -> None:
    builder = BatchBuilder(100)
    builder.append(None, b"first", timestamp=10)
    assert not builder.append(None, bytes(1000), timestamp=20)
    assert builder.append(None, b"third", timestamp=15)
    batch = builder.build()
    assert read_header(batch).max_timestamp == 15
    assert [record.value for record in read_records(batch)] == [b"first", b"third"]


def test_first_record_always_fits() -> None:
    builder = BatchBuilder(100)
    assert builder.append(None, bytes(1000))
    assert not builder.append(None, b"")


def test_expected_ratio_makes_room_for_more() -> None:
    plain = BatchBuilder(10_000, Compression.LZ4)
    expecting = BatchBuilder(10_000, Compression.LZ4, ratio=0.25)
    for builder in (plain, expecting):
        while builder.append(None, bytes(100)):
            pass
    assert 3.9 < expecting.count / plain.count < 4.1
    assert expecting.estimated_size <= 10_000 < expecting.plain_size


def test_ratio_means_nothing_without_compression() -> None:
    builder = BatchBuilder(10_000, ratio=0.25)
    builder.append(None, bytes(1000))
    assert builder.estimated_size == builder.plain_size


@pytest.mark.parametrize("timestamp", [-2, 2**63])
def test_impossible_timestamp_is_refused(timestamp: int) -> None:
    with pytest.raises(ValueError, match="milliseconds"):
        BatchBuilder(1000).append(None, None, (), timestamp)


@pytest.mark.parametrize("compression", list(Compression))
def test_records_that_are_written_already_are_sealed_as_if_they_had_been_built(compression: Compression) -> None:
    records = [Record(0, 77, b"key", b"value" * 40, []), Record(0, 77, None, None, [("name", b"content")])]
    plain = build_batch(records)
    plain[:HEADER_BYTES] = bytes(HEADER_BYTES)
    sealed = seal_batch(
        plain, 2, 77, compression=compression, producer_id=5, producer_epoch=2, base_sequence=9, transactional=True
    )
    built = build_batch(
        records, compression=compression, producer_id=5, producer_epoch=2, base_sequence=9, transactional=True
    )
    assert sealed == built
    assert (sealed is plain) == (compression is Compression.NONE)
