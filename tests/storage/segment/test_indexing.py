"""What an append adds to the indexes, when they are saved, and when they are rebuilt."""

import logging

import pytest

from quire.protocol.records.batch import walk_batches
from simulator.disk import SimDisk
from tests.storage.batches import NOW_MS, batch
from tests.storage.segment.filled_segments import INDEX, TIME_INDEX, add, filled, new_segment, reopened


def test_an_entry_is_made_for_the_first_batch_after_each_interval(disk: SimDisk) -> None:
    segment = new_segment(disk)
    for offset in range(100, 110):
        add(segment, offset, timestamp=NOW_MS + offset)
    # Batches of 129 bytes: two of them have 258 bytes, which is more than the interval.
    assert segment.size == 1290
    entries = list(segment.offset_index.ENTRY.iter_unpack(segment.offset_index.entries))
    assert entries == [(2, 258), (4, 516), (6, 774), (8, 1032)]
    assert segment.time_index.last() == (NOW_MS + 108, 108)


def test_batches_of_one_append_are_indexed_one_by_one(disk: SimDisk) -> None:
    segment = new_segment(disk)
    data = bytearray().join(batch(bytes(60), base_offset=offset) for offset in range(100, 110))
    segment.append(data, walk_batches(data))
    assert segment.offset_index.last() == (108, 1032)


def test_a_completed_segment_knows_its_highest_timestamp(disk: SimDisk) -> None:
    segment = new_segment(disk)
    add(segment, 100, timestamp=NOW_MS + 9)
    add(segment, 101, timestamp=NOW_MS)
    assert segment.save_indexes()
    assert reopened(disk).max_timestamp() == (NOW_MS + 9, 100)
    assert disk.file_size(INDEX) == 0


def test_unchanged_indexes_are_not_written_again(disk: SimDisk) -> None:
    segment = filled(disk)
    segment.save_indexes()
    operations = disk.operations
    assert not segment.save_indexes()
    again = reopened(disk)
    again.load_tail()
    assert not again.save_indexes()
    assert disk.operations == operations


def test_a_wrong_index_is_rebuilt_when_a_look_up_notices(disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
    segment = filled(disk)
    segment.save_indexes()
    right = disk.read_file(INDEX)
    for position in range(len(right)):
        damaged = bytearray(right)
        damaged[position] ^= 0x04
        disk.open(INDEX).pwritev([damaged], 0)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            damaged_segment = reopened(disk)
            for offset in range(100, 140):
                found = damaged_segment.find(offset)
                assert found is not None and found[1].base_offset == offset // 2 * 2
        if caplog.text:
            assert disk.read_file(INDEX) == right, "it was rebuilt"


@pytest.mark.parametrize("path", [INDEX, TIME_INDEX])
def test_a_cut_or_missing_index_is_rebuilt_when_it_is_needed(disk: SimDisk, path: str) -> None:
    filled(disk).save_indexes()
    right = disk.read_file(path)
    for damage in ("cut", "missing"):
        if damage == "cut":
            disk.open(path).truncate(len(right) - 3)
        else:
            disk.remove(path)
        segment = reopened(disk)
        assert segment.max_timestamp() == (NOW_MS + 19, 139)
        found = segment.find(127)
        assert found is not None and found[1].base_offset == 126
        assert disk.read_file(path) == right
