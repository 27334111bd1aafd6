import pytest

from quire.storage.indexes.index_file import IndexCache
from quire.storage.log_config import LogConfig
from quire.storage.segment import Segment
from quire.storage.segments import Segments
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS


def segment(disk: SimDisk, base_offset: int) -> Segment:
    return Segment.create(disk, FOLDER, base_offset, LogConfig(), IndexCache(), now_ms=NOW_MS)


@pytest.fixture
def segments(disk: SimDisk) -> Segments:
    return Segments([segment(disk, base) for base in (100, 200, 300)])


def bases(of: Segments | list[Segment]) -> list[int]:
    return [each.base_offset for each in of]


def test_an_offset_falls_into_the_last_segment_that_begins_before_it(segments: Segments) -> None:
    asked = (0, 99, 100, 199, 200, 299, 300, 10**12)
    assert [segments[segments.slot_of(offset)].base_offset for offset in asked] == [
        *(100, 100, 100, 100),
        *(200, 200, 300, 300),
    ]


def test_a_range_of_offsets_falls_into_the_segments_between_its_ends(segments: Segments) -> None:
    assert bases(segments.between(150, 151)) == [100]
    assert bases(segments.between(150, 200)) == [100]
    assert bases(segments.between(150, 201)) == [100, 200]
    assert bases(segments.between(0, 1000)) == [100, 200, 300]
    assert segments.between(200, 200) == []


def test_the_newest_is_active(disk: SimDisk, segments: Segments) -> None:
    assert segments.active.base_offset == 300
    segments.add(segment(disk, 400))
    assert segments.active.base_offset == 400
    assert bases(segments) == [100, 200, 300, 400]


@pytest.mark.parametrize(
    ("offset", "dropped"), [(100, []), (199, []), (200, [100]), (299, [100]), (300, [100, 200]), (999, [100, 200])]
)
def test_dropping_the_start_keeps_the_segment_the_offset_falls_into(
    segments: Segments, offset: int, dropped: list[int]
) -> None:
    assert bases(segments.drop_before(offset)) == dropped
    assert bases(segments) == [base for base in (100, 200, 300) if base not in dropped]


@pytest.mark.parametrize(
    ("offset", "dropped"),
    [(301, []), (300, [300]), (201, [300]), (200, [300, 200]), (100, [300, 200]), (0, [300, 200])],
)
def test_dropping_the_end_takes_the_newest_first_and_keeps_the_oldest(
    segments: Segments, offset: int, dropped: list[int]
) -> None:
    assert bases(segments.drop_from(offset)) == dropped
    assert bases(segments) == [base for base in (100, 200, 300) if base not in dropped]
    assert segments.active.base_offset == bases(segments)[-1]


def test_all_can_be_replaced_by_one(disk: SimDisk, segments: Segments) -> None:
    assert bases(segments.replace_all(segment(disk, 7))) == [300, 200, 100]
    assert bases(segments) == [7]
