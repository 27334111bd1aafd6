"""One segment: appending, truncating and retiring it."""

import pytest

from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment import Segment
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, NOW_MS
from tests.storage.segment.filled_segments import add, filled


def test_a_failed_write_leaves_nothing_behind(disk: SimDisk) -> None:
    segment = filled(disk, 2)
    size = segment.size
    disk.capacity_bytes = size + 50
    with pytest.raises(OSError, match="space"):
        add(segment, 104)
    assert segment.size == disk.file_size(segment.path) == size
    disk.capacity_bytes = None
    add(segment, 104)
    assert segment.find(104) is not None


@pytest.mark.parametrize("seed", range(20))
def test_a_power_loss_does_not_bring_a_failed_write_back(disk: SimDisk, seed: int) -> None:
    segment = filled(disk, 2)
    for folder in ("data", FOLDER):
        disk.sync_dir(folder)
    disk.capacity_bytes = segment.size + 50
    with pytest.raises(OSError, match="space"):
        add(segment, 104)
    assert disk.crash(SimRandom(seed)).file_size(segment.path) == segment.size


def test_truncating_drops_the_batch_with_the_offset_and_what_follows(disk: SimDisk) -> None:
    segment = filled(disk)
    assert segment.truncate_to(131) == 130
    assert segment.find(130) is None
    assert segment.max_timestamp() == (NOW_MS + 14, 129)
    for at in range(15, 20):
        add(segment, 100 + 2 * at, count=2, timestamp=NOW_MS + at)
    assert segment.max_timestamp() == (NOW_MS + 19, 139)
    for offset in range(100, 140):
        found = segment.find(offset)
        assert found is not None and found[1].base_offset == offset // 2 * 2


def test_truncated_to_nothing_it_remembers_nothing(disk: SimDisk) -> None:
    segment = filled(disk)
    assert segment.truncate_to(100) == 100
    assert segment.max_timestamp() == (-1, 100)
    assert (segment.size, segment.offset_index.count, segment.time_index.count) == (0, 0, 0)


def test_truncating_to_the_end_changes_nothing(disk: SimDisk) -> None:
    segment = filled(disk)
    size = segment.size
    assert segment.truncate_to(140) == 140
    assert segment.size == size


def damage(disk: SimDisk, segment: Segment, offset: int, at: int) -> None:
    """Flips a bit in the header of the batch at `offset`."""
    found = segment.find(offset)
    assert found is not None
    (byte,) = segment.file.pread(1, found[0] + at)
    disk.open(segment.path).pwritev([bytes([byte ^ 64])], found[0] + at)


OFFSET_AT, LENGTH_AT = 6, 8


@pytest.mark.parametrize("at", [OFFSET_AT, LENGTH_AT])
def test_truncating_stops_at_a_damaged_batch_that_is_to_be_kept(disk: SimDisk, at: int) -> None:
    """It would cut off intact batches, and the segment would seem to have them."""
    segment = filled(disk)
    damage(disk, segment, 132, at)
    size = segment.size
    with pytest.raises(DamagedBatchError):
        segment.truncate_to(134)
    assert segment.size == disk.file_size(segment.path) == size


@pytest.mark.parametrize("at", [OFFSET_AT, LENGTH_AT])
def test_truncating_removes_a_damaged_batch_as_any_other(disk: SimDisk, at: int) -> None:
    segment = filled(disk)
    damage(disk, segment, 134, at)
    assert segment.truncate_to(134) == 134
    assert segment.find(134) is None
    found = segment.find(133)
    assert found is not None and found[1].base_offset == 132


def test_retired_files_are_renamed_and_stay_readable(disk: SimDisk) -> None:
    segment = filled(disk)
    segment.save_indexes()
    content = disk.read_file(segment.path)
    file = segment.file
    renamed = segment.retire()
    assert sorted(renamed) == [
        f"{FOLDER}/00000000000000000100.index.deleted",
        f"{FOLDER}/00000000000000000100.log.deleted",
        f"{FOLDER}/00000000000000000100.timeindex.deleted",
    ]
    assert disk.list_dir(FOLDER) == sorted(path.rpartition("/")[2] for path in renamed)
    assert file.pread(len(content), 0) == content
