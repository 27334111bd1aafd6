"""Control batches: their attributes, their keys, and unknown types."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.records import (
    ControlRecordType,
    InvalidRecords,
    Record,
    build_control_batch,
    control_type,
    read_header,
    read_records,
)


def test_end_of_a_transaction_is_marked_with_its_producer() -> None:
    batch = build_control_batch(
        [(ControlRecordType.COMMIT, b"marker")], 1234, base_offset=9, leader_epoch=5, producer_id=77, producer_epoch=3
    )
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.base_offset, header.leader_epoch, header.producer_id, header.producer_epoch) == (9, 5, 77, 3)
    assert (header.base_sequence, header.max_timestamp) == (-1, 1234)
    (record,) = read_records(batch)
    assert (record.key, record.value) == (b"\0\0\0\1", b"marker")
    assert control_type(record) is ControlRecordType.COMMIT


def test_control_records_of_the_quorum_belong_to_no_transaction() -> None:
    batch = build_control_batch(
        [(ControlRecordType.KRAFT_VERSION, b"version"), (ControlRecordType.KRAFT_VOTERS, b"voters")], 1234
    )
    assert read_header(batch).is_control
    assert not read_header(batch).is_transactional
    assert [(control_type(record), record.value) for record in read_records(batch)] == [
        (ControlRecordType.KRAFT_VERSION, b"version"),
        (ControlRecordType.KRAFT_VOTERS, b"voters"),
    ]


@pytest.mark.parametrize("kind", ControlRecordType)
def test_every_kind_is_recognised_by_its_key(kind: ControlRecordType) -> None:
    (record,) = read_records(build_control_batch([(kind, b"")], 0))
    assert control_type(record) is kind


def test_newer_kind_is_none_and_longer_key_is_read() -> None:
    assert control_type(Record(key=b"\0\0\x00\x63")) is None
    assert control_type(Record(key=b"\0\1\0\2more")) is ControlRecordType.LEADER_CHANGE


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_key_that_is_too_short_is_refused(key: bytes | None) -> None:
    with pytest.raises(InvalidRecords) as caught:
        control_type(Record(offset=41, key=key))
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert "41" in caught.value.message
