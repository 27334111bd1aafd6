"""Which segments a repair replaces."""

import pytest

from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.repair.targets import find_targets
from simulator.disk import SimDisk
from tests.storage.batches import SMALL_SEGMENTS, append_values, letters, open_log

COMPACTED = SMALL_SEGMENTS._replace(compact=True)


def targets(disk: SimDisk, config: LogConfig, damaged: int, cleaned_offset: int | None) -> list[tuple[int, int]]:
    """Base and end offset of the segments that replace the one that begins at `damaged`; each has two batches."""
    log: Log = open_log(disk, config)
    append_values(log, *letters(9))
    segment = next(each for each in log.segments if each.base_offset == damaged)
    return [(each.segment.base_offset, each.end_offset) for each in find_targets(log, segment, cleaned_offset)]


@pytest.mark.parametrize("damaged", [0, 4, 6])
def test_of_a_log_that_was_never_compacted_only_the_damaged_segment(disk: SimDisk, damaged: int) -> None:
    assert targets(disk, SMALL_SEGMENTS, damaged, None) == [(damaged, damaged + 2)]


def test_of_a_compacted_log_everything_up_to_the_damage_which_comes_last(disk: SimDisk) -> None:
    assert targets(disk, COMPACTED, 4, None) == [(0, 2), (2, 4), (4, 6)]
    assert targets(disk, COMPACTED, 4, 2) == [(0, 2), (2, 4), (4, 6)]


def test_and_everything_that_was_compacted(disk: SimDisk) -> None:
    assert targets(disk, COMPACTED, 2, 6) == [(0, 2), (4, 6), (2, 4)]


def test_a_log_that_was_compacted_earlier_may_have_gaps_too(disk: SimDisk) -> None:
    assert targets(disk, SMALL_SEGMENTS, 2, 4) == [(0, 2), (2, 4)]
