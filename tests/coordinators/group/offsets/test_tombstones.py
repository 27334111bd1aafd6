"""A portion of tombstones ends at a number of records, or at half of the largest append."""

from quire.coordinators.group.offsets.tombstones import MAX_RECORDS, TombstoneStep
from quire.coordinators.runtime.record import encode_key
from quire.protocol.messages.group_records import OffsetCommitKey


def test_a_step_is_full_at_its_number_of_records() -> None:
    step = TombstoneStep(1 << 20)
    for number in range(MAX_RECORDS):
        assert not step.is_full
        step.add("g", "t", number)
    assert step.is_full and len(step.records) == MAX_RECORDS


def test_a_step_fits_into_the_log_with_long_names() -> None:
    step = TombstoneStep(100_000)
    group_id, topic = "\N{GRINNING FACE}" * 1_000, "t" * 249
    while not step.is_full:
        step.add(group_id, topic, len(step.records))
    assert sum(len(encode_key(record.key)) for record in step.records) < 100_000


def test_a_tombstone_names_its_partition() -> None:
    step = TombstoneStep(100_000)
    step.add("g", "t", 3)
    (record,) = step.records
    assert record.key == OffsetCommitKey(group="g", topic="t", partition=3) and record.value is None
