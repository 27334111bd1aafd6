"""Which indexes are in memory, and what reaches their files."""

from quire.storage.indexes.index_file import IndexCache
from quire.storage.indexes.offset_index import OffsetIndex
from simulator.disk import SimDisk


def index_of(disk: SimDisk, base_offset: int, cache: IndexCache, entries: int = 10) -> OffsetIndex:
    index = OffsetIndex(disk, f"data/orders-0/{base_offset:020d}.index", base_offset, cache)
    index.reset()
    for slot in range(1, entries + 1):
        index.append(base_offset + slot, slot * 100)
    index.write()
    return index


def test_writing_replaces_longer_content_completely(disk: SimDisk) -> None:
    cache = IndexCache()
    path = index_of(disk, 0, cache, entries=10).path
    index_of(disk, 0, cache, entries=2)
    assert disk.file_size(path) == 2 * 8


def test_the_cache_keeps_the_most_recently_used_within_its_limit(disk: SimDisk) -> None:
    cache = IndexCache(limit_bytes=200)
    indexes = [index_of(disk, base, cache) for base in (0, 100, 200)]
    for index in indexes:
        index.unpin()
    assert cache.size_bytes == 160
    assert indexes[1].lookup(105) == (105, 500)
    assert indexes[0].lookup(5) == (5, 500), "it is read from its file again"
    assert cache.size_bytes == 160
    disk.remove(indexes[0].path)
    disk.remove(indexes[1].path)
    assert indexes[0].count == indexes[1].count == 10, "these two are in memory"


def test_a_pinned_index_never_leaves_memory(disk: SimDisk) -> None:
    cache = IndexCache(limit_bytes=100)
    active = index_of(disk, 0, cache)
    active.append(50, 5000)
    for base in (100, 200, 300):
        index_of(disk, base, cache).unpin()
    assert active.last() == (50, 5000)


def test_a_discarded_index_takes_no_room_in_the_cache(disk: SimDisk) -> None:
    cache = IndexCache()
    index = index_of(disk, 0, cache)
    index.unpin()
    index.discard()
    assert cache.size_bytes == 0
