import pytest

from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.indexes.time_index import TimeIndex
from simulator.disk import SimDisk

PATH = "data/orders-0/00000000000000000100.timeindex"


def new_index(disk: SimDisk) -> TimeIndex:
    index = TimeIndex(disk, PATH, 100, IndexCache())
    index.reset()
    return index


def test_an_entry_is_timestamp_and_relative_offset_in_big_endian(disk: SimDisk) -> None:
    index = new_index(disk)
    index.append(timestamp=0x18BCFE568AB, offset=117)
    index.write()
    assert disk.read_file(PATH) == bytes.fromhex("0000018bcfe568ab 00000011")


def test_timestamps_only_rise(disk: SimDisk) -> None:
    index = new_index(disk)
    assert index.append(5000, 110)
    assert not index.append(5000, 120)
    assert not index.append(4000, 130)
    assert index.append(6000, 140)
    assert index.count == 2


def test_records_without_timestamp_are_not_indexed(disk: SimDisk) -> None:
    index = new_index(disk)
    assert not index.append(-1, 110)
    assert index.last() == (-1, 100)


def test_lookup_finds_the_last_entry_at_or_below_the_time(disk: SimDisk) -> None:
    index = new_index(disk)
    index.append(5000, 110)
    index.append(6000, 120)
    assert index.lookup(4999) == (-1, 100)
    assert index.lookup(5000) == (5000, 110)
    assert index.lookup(5999) == (5000, 110)
    assert index.lookup(9999) == (6000, 120)


def test_truncating_drops_entries_of_batches_that_reach_the_offset(disk: SimDisk) -> None:
    index = new_index(disk)
    index.append(5000, 110)
    index.append(6000, 120)
    index.truncate_to(120)
    assert index.last() == (5000, 110)


def test_the_last_entry_of_an_index_on_disk_is_all_that_is_read_for_it(disk: SimDisk) -> None:
    index = new_index(disk)
    for timestamp in range(100):
        index.append(timestamp, 100 + timestamp)
    index.write()
    cache = IndexCache()
    again = TimeIndex(disk, PATH, 100, cache)
    assert again.last() == (99, 199)
    assert cache.size_bytes == 0
    assert again.lookup(50) == (50, 150)
    assert cache.size_bytes == 1200
    disk.open(PATH).truncate(13)
    with pytest.raises(CorruptIndexError):
        TimeIndex(disk, PATH, 100, cache).last()
    disk.open(PATH).truncate(0)
    assert TimeIndex(disk, PATH, 100, cache).last() == (-1, 100)
    disk.remove(PATH)
    with pytest.raises(CorruptIndexError):
        TimeIndex(disk, PATH, 100, cache).last()


def test_it_keeps_one_slot_for_the_entry_of_a_completed_segment(disk: SimDisk) -> None:
    index = new_index(disk)
    index.append(5000, 110)
    assert not index.is_full(limit_bytes=36)
    index.append(6000, 120)
    assert index.is_full(limit_bytes=36)
