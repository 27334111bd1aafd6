"""Up to where two logs are the same, from their leader epochs alone."""

import pytest

from quire.node.moves.common_end import common_end
from quire.storage.leader_epochs import LeaderEpochs

Entries = list[tuple[int, int]]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([(0, 0)], [(0, 0)], 10),
        ([(0, 0), (2, 4)], [(0, 0), (2, 4)], 10),
        ([(0, 0), (1, 4)], [(0, 0), (2, 4)], 4),
        ([(0, 0), (1, 4)], [(0, 0), (1, 7)], 4),
        ([(0, 0)], [(0, 0), (1, 7)], 7),
        ([(1, 0)], [(0, 0)], 0),
        ([], [(0, 0)], 0),
        ([], [], 0),
        ([(3, 5)], [(3, 5)], 0),
    ],
)
def test_logs_are_the_same_as_far_as_each_offset_has_the_same_known_epoch(
    one: Entries, other: Entries, expected: int
) -> None:
    assert common_end(LeaderEpochs(one), LeaderEpochs(other), 0, 10) == expected
    assert common_end(LeaderEpochs(other), LeaderEpochs(one), 0, 10) == expected


def test_what_is_before_the_start_or_after_the_end_of_either_does_not_count() -> None:
    assert common_end(LeaderEpochs([(0, 0), (4, 3)]), LeaderEpochs([(4, 3)]), 3, 10) == 10
    assert common_end(LeaderEpochs([(0, 0), (4, 8)]), LeaderEpochs([(0, 0)]), 0, 8) == 8
