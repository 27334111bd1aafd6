"""What counts as an event of a partition or a broker, from one state in the metadata to the next."""

from itertools import pairwise

from quire.metadata.image import BrokerImage, ClusterImage
from quire.metadata.partition_image import NO_LEADER, PartitionImage
from simulator.white_box.happenings import (
    CANCELLATION,
    COORDINATOR_MOVE,
    ELECTION,
    ELR_ELECTION,
    EXPANSION,
    FENCING,
    REASSIGNMENT,
    SHRINK,
    Happenings,
)

KEY = bytes(16), 0
WHOLE = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=4)


def events(*states: PartitionImage, internal: bool = False) -> dict[str, int]:
    happenings = Happenings()
    for before, now in pairwise(states):
        happenings.partition(KEY, before, now, internal=internal)
    return happenings.counts


def test_a_smaller_isr_and_a_larger_one_count() -> None:
    smaller = WHOLE._replace(isr=(1, 2))
    assert events(WHOLE, smaller) == {SHRINK: 1}
    assert events(smaller, WHOLE) == {EXPANSION: 1}


def test_an_election_counts_and_says_whether_it_was_from_the_elr() -> None:
    from_isr = WHOLE._replace(leader=2, leader_epoch=5)
    assert events(WHOLE, from_isr) == {ELECTION: 1}
    alone = WHOLE._replace(isr=(), leader=NO_LEADER, leader_epoch=5, elr=(2, 3))
    from_elr = alone._replace(isr=(3,), leader=3, leader_epoch=6, elr=(2,))
    assert events(alone, from_elr) == {EXPANSION: 1, ELECTION: 1, ELR_ELECTION: 1}


def test_a_coordinator_moves_when_another_node_leads_and_not_when_the_same_one_does_again() -> None:
    nobody = WHOLE._replace(leader=NO_LEADER, leader_epoch=5)
    again, moved = WHOLE._replace(leader_epoch=6), WHOLE._replace(leader=2, leader_epoch=6)
    assert COORDINATOR_MOVE not in events(WHOLE, nobody, again, internal=True)
    assert events(WHOLE, nobody, moved, internal=True)[COORDINATOR_MOVE] == 1
    assert COORDINATOR_MOVE not in events(WHOLE, nobody, moved)


def test_a_reassignment_counts_when_it_ends() -> None:
    moving = WHOLE._replace(replicas=(2, 3, 4, 1), adding_replicas=(4,), removing_replicas=(1,))
    moved = PartitionImage(replicas=(2, 3, 4), isr=(1, 2, 3), leader=1, leader_epoch=4)
    assert events(WHOLE, moving) == {}
    assert events(WHOLE, moving, moved) == {REASSIGNMENT: 1}
    assert events(WHOLE, moving, WHOLE) == {CANCELLATION: 1}


def test_a_broker_that_was_unfenced_and_is_fenced_counts_once() -> None:
    happenings = Happenings()
    for offset, fenced in enumerate((True, False, True, True)):
        broker = BrokerImage(broker_id=1, epoch=7, incarnation_id=bytes(16), fenced=fenced)
        happenings.brokers(ClusterImage(offset=offset, brokers={1: broker}))
    assert happenings.counts == {FENCING: 1}
