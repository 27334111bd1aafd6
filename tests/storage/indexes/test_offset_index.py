import pytest

from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.indexes.offset_index import OffsetIndex
from simulator.disk import SimDisk

PATH = "data/orders-0/00000000000000000100.index"


def new_index(disk: SimDisk) -> OffsetIndex:
    index = OffsetIndex(disk, PATH, 100, IndexCache())
    index.reset()
    return index


def test_an_entry_is_relative_offset_and_position_in_big_endian(disk: SimDisk) -> None:
    index = new_index(disk)
    index.append(last_offset=103, position=0x1234)
    index.append(last_offset=170, position=0x12345)
    index.write()
    assert disk.read_file(PATH) == bytes.fromhex("00000003 00001234 00000046 00012345")


def test_lookup_finds_the_last_batch_that_ends_at_or_before_the_offset(disk: SimDisk) -> None:
    index = new_index(disk)
    assert index.lookup(500) is None
    index.append(110, 4000)
    index.append(120, 9000)
    assert index.lookup(109) is None
    assert index.lookup(110) == (110, 4000)
    assert index.lookup(119) == (110, 4000)
    assert index.lookup(120) == (120, 9000)
    assert index.lookup(1 << 40) == (120, 9000)
    assert index.last() == (120, 9000)


def test_the_last_batch_before_a_position(disk: SimDisk) -> None:
    index = new_index(disk)
    assert index.last_before_position(500) is None
    index.append(110, 4000)
    index.append(120, 9000)
    assert index.last_before_position(4000) is None
    assert index.last_before_position(4001) == (110, 4000)
    assert index.last_before_position(9000) == (110, 4000)
    assert index.last_before_position(1 << 30) == (120, 9000)


def test_truncating_drops_batches_that_reach_the_offset(disk: SimDisk) -> None:
    index = new_index(disk)
    for last_offset in (110, 120, 130):
        index.append(last_offset, last_offset * 10)
    index.truncate_to(121)
    assert index.last() == (120, 1200)
    index.truncate_to(120)
    assert index.last() == (110, 1100)
    index.truncate_to(100)
    assert index.last() is None


def test_it_is_full_when_no_entry_fits_any_more(disk: SimDisk) -> None:
    index = new_index(disk)
    index.append(110, 1)
    assert not index.is_full(limit_bytes=16)
    index.append(120, 2)
    assert index.is_full(limit_bytes=16)
    assert index.is_full(limit_bytes=23)


def test_a_file_of_a_wrong_size_or_none_at_all_is_corrupt(disk: SimDisk) -> None:
    index = OffsetIndex(disk, PATH, 100, IndexCache())
    with pytest.raises(CorruptIndexError, match="missing"):
        index.lookup(100)
    disk.open(PATH, create=True).pwritev([bytes(11)], 0)
    with pytest.raises(CorruptIndexError, match="11 bytes"):
        index.lookup(100)
