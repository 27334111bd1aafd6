"""aiokafka and kafka-python read Quire's batches, and Quire reads theirs, in every codec they have."""

from typing import Any

import pytest
from aiokafka.record import default_records as aiokafka_records
from kafka.record import default_records as kafka_python_records

from quire.protocol.records import (
    Compression,
    ControlRecordType,
    Record,
    build_batch,
    build_control_batch,
    read_header,
    read_records,
    validate,
)

pytestmark = pytest.mark.usefixtures("native")

RECORDS = [
    Record(0, 1_700_000_000_000, b"key", b"value", []),
    Record(1, 1_700_000_000_500, None, b"no key", [("name", b"content"), ("null", None), ("empty", b"")]),
    Record(2, 1_699_999_999_000, b"tombstone", None, []),
    Record(3, 1_700_000_000_001, b"", b"", [("größe", "µ".encode())]),
    Record(4, 1_700_000_000_002, bytes(200), bytes(range(256)) * 300, []),
]

# kafka-python needs a library for snappy that is not among ours; aiokafka's covers it.
OTHERS = [
    *(pytest.param(aiokafka_records, codec, id=f"aiokafka-{codec.name}") for codec in Compression),
    *(
        pytest.param(kafka_python_records, codec, id=f"kafka-python-{codec.name}")
        for codec in Compression
        if codec is not Compression.SNAPPY
    ),
]


def as_ours(record: Any) -> Record:
    return Record(record.offset, record.timestamp, record.key, record.value, list(record.headers))


@pytest.mark.parametrize(("library", "codec"), OTHERS)
def test_their_batches_are_accepted_and_read(library: Any, codec: Compression) -> None:
    builder = library.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=1,
        producer_id=12,
        producer_epoch=3,
        base_sequence=40,
        batch_size=10**6,
    )
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, record.headers)
    batch = bytearray(builder.build())
    before = bytes(batch)
    (header,) = validate(batch, max_batch_bytes=10**6, now_ms=1_700_000_000_000)
    assert batch == before, "nothing needed a correction"
    assert header.compression is codec
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (12, 3, 40)
    assert read_records(batch) == RECORDS


@pytest.mark.parametrize(("library", "codec"), OTHERS)
def test_our_batches_are_read_by_them(library: Any, codec: Compression) -> None:
    batch = build_batch(RECORDS, base_offset=70, compression=codec, leader_epoch=2, producer_id=8, producer_epoch=1)
    theirs = library.DefaultRecordBatch(bytes(batch))
    assert theirs.validate_crc()
    assert theirs.base_offset == 70
    assert theirs.next_offset == 75
    assert theirs.max_timestamp == 1_700_000_000_500
    read = [as_ours(record) for record in theirs]
    assert [record.offset for record in read] == [70, 71, 72, 73, 74]
    for record in read:
        record.offset -= 70
    assert read == RECORDS


@pytest.mark.parametrize("library", [aiokafka_records, kafka_python_records])
def test_our_log_append_time_is_theirs(library: Any) -> None:
    theirs = library.DefaultRecordBatch(bytes(build_batch(RECORDS, timestamp_type=1)))
    assert theirs.timestamp_type == 1
    assert {record.timestamp for record in theirs} == {1_700_000_000_500}


def test_our_control_batches_are_theirs() -> None:
    batch = build_control_batch([(ControlRecordType.ABORT, bytes(6))], 5, producer_id=8, producer_epoch=1)
    theirs = kafka_python_records.DefaultRecordBatch(bytes(batch))
    assert theirs.is_control_batch
    assert theirs.is_transactional
    (marker,) = theirs
    assert marker.abort
    assert read_header(batch).producer_id == 8
