import pytest

from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.checked_ranges import CheckedRanges


def test_ranges_grow_together() -> None:
    ranges = CheckedRanges()
    ranges.add(10, 20)
    ranges.add(30, 40)
    assert [ranges.intact_from(at, 0) for at in (5, 10, 19, 20, 25, 30, 40)] == [5, 20, 20, 20, 25, 40, 40]
    ranges.add(20, 30)
    assert ranges.intact_from(10, 0) == 40
    assert not ranges.cover(40)
    ranges.add(0, 10)
    assert ranges.cover(40) and not ranges.cover(41)


def test_ranges_swallow_what_is_in_them() -> None:
    ranges = CheckedRanges()
    for start in (10, 30, 50):
        ranges.add(start, start + 5)
    ranges.add(5, 52)
    assert ranges.intact_from(5, 0) == 55
    ranges.add(7, 7)
    assert ranges.intact_from(5, 0) == 55


def test_a_cut_ends_them() -> None:
    ranges = CheckedRanges()
    ranges.add(0, 20)
    ranges.add(30, 40)
    ranges.damaged(DamagedBatchError("x", 20, "bad"))
    ranges.truncate_to(10)
    assert ranges.intact_from(0, 0) == 10
    assert ranges.intact_from(30, 0) == 30
    assert ranges.intact_from(20, 0) == 20
    assert ranges.cover(10)


def test_reading_at_a_damage_raises() -> None:
    ranges = CheckedRanges()
    assert ranges.damaged(DamagedBatchError("x", 20, "bad"))
    assert not ranges.damaged(DamagedBatchError("x", 20, "bad"))
    with pytest.raises(DamagedBatchError):
        ranges.intact_from(20, 0)


def test_a_lost_range_before_a_batch_is_not_skipped() -> None:
    ranges = CheckedRanges()
    ranges.add(10, 20)
    ranges.lost_before(10, 7, DamagedBatchError("x", 5, "bad"))
    assert ranges.intact_from(10, 7) == 20
    with pytest.raises(DamagedBatchError):
        ranges.intact_from(10, 6)
    ranges.truncate_to(10)
    assert ranges.intact_from(10, 6) == 10
