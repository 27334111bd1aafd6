from quire.storage.positions import RecentPositions


def test_recent_positions_are_found_and_old_ones_forgotten() -> None:
    recent = RecentPositions()
    for offset in range(100):
        recent.remember(offset, offset * 10)
    assert recent.find(99) == 990
    assert recent.find(100 - RecentPositions.LIMIT) == (100 - RecentPositions.LIMIT) * 10
    assert recent.find(99 - RecentPositions.LIMIT) is None
    recent.clear()
    assert recent.find(99) is None


def test_remembering_an_offset_again_forgets_no_other() -> None:
    recent = RecentPositions()
    for offset in range(RecentPositions.LIMIT):
        recent.remember(offset, offset)
    for _ in range(10):
        recent.remember(5, 55)
    assert recent.find(0) == 0
    assert recent.find(5) == 55
