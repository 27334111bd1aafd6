"""Batches are decoded once, and a broken one is found each time."""

import pytest

from quire.protocol.records import InvalidRecords, Record, build_batch
from simulator.checks.served import records_of

BATCH = bytes(build_batch([Record(0, 5, b"k", b"value")]))


def test_the_records_of_a_batch_are_the_same_however_often_it_is_read() -> None:
    assert [record.value for record in records_of(BATCH)] == [b"value"]
    assert records_of(bytes(bytearray(BATCH))) is records_of(BATCH)


def test_a_damaged_copy_is_broken_each_time_although_the_batch_was_read() -> None:
    records_of(BATCH)
    damaged = BATCH[:-3] + bytes([BATCH[-3] ^ 1]) + BATCH[-2:]
    for _ in range(2):
        with pytest.raises(InvalidRecords):
            records_of(damaged)
