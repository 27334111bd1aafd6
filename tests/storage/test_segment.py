"""One segment: what an append does to the indexes, look-ups, and indexes that lie."""

import logging

import pytest

from quire.protocol.records.batch import BatchHeader, walk_batches
from quire.storage.batch_scan import DamagedBatchError
from quire.storage.end_marker import EndMarker
from quire.storage.index_file import CorruptIndexError, IndexCache
from quire.storage.log_config import LogConfig
from quire.storage.segment import Segment
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batch_walks import new_walk
from tests.storage.batches import FOLDER, NOW_MS, batch, emptied

CONFIG = LogConfig(index_interval_bytes=200)
INDEX = f"{FOLDER}/00000000000000000100.index"
TIME_INDEX = f"{FOLDER}/00000000000000000100.timeindex"


def new_segment(disk: SimDisk, config: LogConfig = CONFIG) -> Segment:
    return Segment.create(disk, FOLDER, 100, config, IndexCache(), now_ms=NOW_MS)


def reopened(disk: SimDisk) -> Segment:
    path = f"{FOLDER}/00000000000000000100.log"
    return Segment(disk, FOLDER, 100, CONFIG, IndexCache(), now_ms=NOW_MS, size=disk.file_size(path))


def add(segment: Segment, offset: int, *, size: int = 60, timestamp: int = NOW_MS, count: int = 1) -> None:
    values = [bytes(size)] * count
    data = batch(*values, base_offset=offset, timestamp=timestamp, leader_epoch=0)
    segment.append(data, walk_batches(data))


def filled(disk: SimDisk, count: int = 20) -> Segment:
    segment = new_segment(disk)
    for at in range(count):
        add(segment, 100 + 2 * at, count=2, timestamp=NOW_MS + at)
    return segment


def test_an_entry_is_made_for_the_first_batch_after_each_interval(disk: SimDisk) -> None:
    segment = new_segment(disk)
    for offset in range(100, 110):
        add(segment, offset, timestamp=NOW_MS + offset)
    # Batches of 129 bytes: after two of them 258 bytes lie behind, which is more than the interval.
    assert segment.size == 1290
    entries = list(segment.offset_index.ENTRY.iter_unpack(segment.offset_index.entries))
    assert entries == [(2, 258), (4, 516), (6, 774), (8, 1032)]
    assert segment.time_index.last() == (NOW_MS + 108, 108)


def test_batches_of_one_append_are_indexed_one_by_one(disk: SimDisk) -> None:
    segment = new_segment(disk)
    data = bytearray().join(batch(bytes(60), base_offset=offset) for offset in range(100, 110))
    segment.append(data, walk_batches(data))
    assert segment.offset_index.last() == (108, 1032)


def test_every_offset_is_found_in_its_batch(disk: SimDisk) -> None:
    segment = filled(disk)
    for offset in range(100, 140):
        found = segment.find(offset)
        assert found is not None
        position, header = found
        assert header.base_offset <= offset <= header.last_offset
        assert segment.batch_size_at(position) == header.size
    assert segment.find(140) is None


def test_an_offset_in_a_gap_is_found_in_the_batch_after_it(disk: SimDisk) -> None:
    segment = new_segment(disk)
    add(segment, 100)
    add(segment, 105)
    found = segment.find(102)
    assert found is not None and found[1].base_offset == 105


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


def test_the_tail_of_a_clean_segment_gives_its_end_and_timestamps(disk: SimDisk) -> None:
    segment = filled(disk, 21)
    segment.save_indexes()
    again = reopened(disk)
    assert again.load_tail() == 142
    assert again.max_timestamp() == (NOW_MS + 20, 141)
    add(again, 142)
    add(segment, 142)
    assert again.offset_index.entries == segment.offset_index.entries


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


class Accepting:
    """A visitor that takes whatever comes, or nothing."""

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal

    def meet(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        return self.refusal

    def meet_producer(self, header: BatchHeader) -> None:
        pass

    def meet_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        pass

    def pass_over(self, damage: DamagedBatchError) -> int | None:
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


def test_a_clean_segment_with_a_damaged_tail_says_so(disk: SimDisk) -> None:
    segment = filled(disk)
    segment.save_indexes()
    disk.open(segment.path).truncate(segment.size - 1)
    with pytest.raises(DamagedBatchError):
        reopened(disk).load_tail()
    disk.open(segment.path).truncate(segment.size // 2)
    with pytest.raises(CorruptIndexError):
        reopened(disk).load_tail()


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
