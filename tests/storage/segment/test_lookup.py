"""Finding batches of a segment by offset."""

from simulator.disk import SimDisk
from tests.storage.segment.filled_segments import add, filled, new_segment


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
