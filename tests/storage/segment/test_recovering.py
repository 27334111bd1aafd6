"""Opening a segment after a clean stop, and scanning it after a crash."""

import pytest

from quire.protocol.records.batch import BatchHeader, walk_batches
from quire.storage.indexes.index_file import CorruptIndexError
from quire.storage.producers.end_marker import EndMarker
from quire.storage.scanning.batch_scan import DamagedBatchError
from simulator.disk import SimDisk
from tests.storage.batch_walks import new_walk
from tests.storage.batches import NOW_MS, batch, emptied
from tests.storage.segment.filled_segments import INDEX, TIME_INDEX, add, filled, new_segment, reopened


class Accepting:
    """A visitor that accepts everything, or nothing."""

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal

    def visit(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        return self.refusal

    def visit_producer(self, header: BatchHeader) -> None:
        pass

    def visit_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        pass

    def skip_damaged(self, damage: DamagedBatchError) -> int | None:
        return None


def test_recovery_rebuilds_the_indexes(disk: SimDisk) -> None:
    segment = filled(disk)
    segment.save_indexes()
    right = disk.read_file(INDEX), disk.read_file(TIME_INDEX)
    disk.open(INDEX).truncate(0)
    again = reopened(disk)
    assert again.recover(new_walk(100), Accepting()) is None
    again.save_indexes()
    assert (disk.read_file(INDEX), disk.read_file(TIME_INDEX)) == right


@pytest.mark.parametrize("empty_at", [0, 1, 2])
def test_a_batch_that_compaction_has_emptied_has_no_time_however_the_segment_is_opened(
    disk: SimDisk, empty_at: int
) -> None:
    segment = new_segment(disk)
    for at in range(3):
        time = NOW_MS + (1000 if at == empty_at else at)
        data = batch(b"value", base_offset=100 + at, timestamp=time, leader_epoch=0)
        left = emptied(data) if at == empty_at else data
        segment.append(left, walk_batches(left))
    last = max({0, 1, 2} - {empty_at})
    expected = NOW_MS + last, 100 + last
    assert segment.max_timestamp() == expected
    scanned = reopened(disk)
    assert scanned.recover(new_walk(100), Accepting()) is None
    assert scanned.max_timestamp() == expected
    scanned.save_indexes()
    loaded = reopened(disk)
    assert loaded.load_tail() == 103
    assert loaded.max_timestamp() == expected


def test_recovery_ends_at_the_first_batch_that_is_refused_or_too_far_away(disk: SimDisk) -> None:
    segment = new_segment(disk)
    data = batch(base_offset=100) + batch(base_offset=2**31 + 100)
    disk.open(segment.path).pwritev([data], 0)
    again = reopened(disk)
    damage = again.recover(new_walk(100), Accepting())
    assert damage is not None and damage.position == again.size == len(data) // 2
    again.cut_tail()
    assert disk.file_size(again.path) == len(data) // 2
    damage = again.recover(new_walk(99), Accepting("of its colour"))
    assert damage is not None and damage.reason == "of its colour" and again.size == 0


def test_the_tail_of_a_clean_segment_gives_its_end_and_timestamps(disk: SimDisk) -> None:
    segment = filled(disk, 21)
    segment.save_indexes()
    again = reopened(disk)
    assert again.load_tail() == 142
    assert again.max_timestamp() == (NOW_MS + 20, 141)
    add(again, 142)
    add(segment, 142)
    assert again.offset_index.entries == segment.offset_index.entries


def test_a_clean_segment_with_a_damaged_tail_says_so(disk: SimDisk) -> None:
    segment = filled(disk)
    segment.save_indexes()
    disk.open(segment.path).truncate(segment.size - 1)
    with pytest.raises(DamagedBatchError):
        reopened(disk).load_tail()
    disk.open(segment.path).truncate(segment.size // 2)
    with pytest.raises(CorruptIndexError):
        reopened(disk).load_tail()
