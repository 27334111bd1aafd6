"""The arithmetic of reassignments, after the cases of Kafka's PartitionReassignmentReplicas, and what Quire adds."""

import pytest

from quire.controller.reassignment import Assignment, Holders, completed, towards
from quire.metadata.partition_image import PartitionImage

Numbers = tuple[int, ...]


def with_replicas(*replicas: int, adding: Numbers = (), removing: Numbers = ()) -> PartitionImage:
    return PartitionImage(replicas, replicas, replicas[0], adding_replicas=adding, removing_replicas=removing)


def holders(*isr: int, elr: Numbers = (), minimum: int = 1) -> Holders:
    return Holders(isr, elr, minimum)


@pytest.mark.parametrize(
    ("present", "target", "replicas", "adding", "removing"),
    [
        ((3, 2, 1), (3, 2, 1), (3, 2, 1), (), ()),
        ((3, 2, 1), (3, 6, 2, 1, 5), (3, 6, 2, 1, 5), (5, 6), ()),
        ((3, 2, 1, 0), (3, 1), (3, 1, 0, 2), (), (0, 2)),
        ((3, 2, 1, 0), (7, 3, 1, 9), (7, 3, 1, 9, 0, 2), (7, 9), (0, 2)),
        ((3, 2, 1, 0), (0, 1, 3, 2), (0, 1, 3, 2), (), ()),
    ],
)
def test_new_replicas_come_first_and_old_ones_stay(
    present: Numbers, target: Numbers, replicas: Numbers, adding: Numbers, removing: Numbers
) -> None:
    assert towards(with_replicas(*present), target, holders(*present)) == Assignment(replicas, adding, removing)


def test_what_an_earlier_reassignment_added_is_still_being_added() -> None:
    before = with_replicas(4, 5, 1, 2, adding=(4, 5), removing=(1, 2))
    assert towards(before, (4, 1), holders(1, 2)) == Assignment((4, 1, 2), (4,), (2,))


def test_an_added_replica_that_alone_has_everything_is_not_dropped() -> None:
    before = with_replicas(4, 5, 1, 2, adding=(4, 5), removing=(1, 2))
    assert towards(before, (1, 2), holders(4)) == Assignment((1, 2, 4, 5), (), (4, 5))
    assert towards(before, (1, 2), holders(4, 1)) == Assignment((1, 2), (), ())
    assert towards(before, (1, 2), holders(4, 1, minimum=2)) == Assignment((1, 2, 4, 5), (), (4, 5))


MOVE = Assignment((3, 4, 5, 0, 1, 2), (3, 4, 5), (0, 1, 2))
REPLACE = Assignment((0, 1, 3, 2), (3,), (2,))
SHRINK = Assignment((0, 1, 2), (), (1, 2))


@pytest.mark.parametrize(
    ("assignment", "who", "target"),
    [
        (Assignment((0, 1, 2)), holders(0, 1, 2), None),
        (MOVE, holders(0, 1, 2, 3, 4), None),
        (MOVE, holders(0, 1, 2, 3, 4, 5), (3, 4, 5)),
        (MOVE, holders(3, 4, 5), (3, 4, 5)),
        (REPLACE, holders(0, 1, 2), None),
        (REPLACE, holders(3), (0, 1, 3)),
        (REPLACE, holders(3, 2), (0, 1, 3)),
        (REPLACE, holders(3, 2, minimum=2), None),
        (REPLACE, holders(3, minimum=2), (0, 1, 3)),
        (REPLACE, holders(3, elr=(2,), minimum=2), None),
        (REPLACE, holders(3, elr=(0,), minimum=2), (0, 1, 3)),
        (REPLACE, holders(3, 0, 2, minimum=2), (0, 1, 3)),
        (SHRINK, holders(1, 2), None),
        (SHRINK, holders(0, 1, 2, minimum=2), (0,)),
    ],
)
def test_a_reassignment_is_complete_when_the_old_replicas_are_not_needed(
    assignment: Assignment, who: Holders, target: Numbers | None
) -> None:
    assert completed(assignment, who) == (None if target is None else Assignment(target))
