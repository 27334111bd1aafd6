"""How many faults a topic survives. The sentences about it are in test_topic_promises.py."""

import pytest

from quire.cli.cluster.topic_state import MANY
from quire.client.admin.topic_replicas import Replicas
from tests.cli.cluster.test_topic_promises import RACKS, part, topic


@pytest.mark.parametrize(
    ("partitions", "up", "writes", "leaders"),
    [
        ([part()], (1, 2, 3), 1, 2),
        ([part(isr=(1, 2))], (1, 2, 3), 0, 1),
        ([part(isr=(1,), elr=(2,))], (1, 2, 3), -1, 1),
        ([part(isr=(1,), elr=(2,))], (1, 3), -1, 0),
        ([part(leader=None, isr=(), elr=(2,))], (1, 3), -1, -1),
        ([part(replicas=(1,), isr=(1,))], (1, 2, 3), 0, 0),
        ([part(0), part(1, isr=(1, 2))], (1, 2, 3), 0, 1),
        ([part(isr=(1, 2, 3), offline=(3,))], (1, 2, 3), 0, 1),
    ],
)
def test_the_weakest_partition_decides(
    partitions: list[Replicas], up: tuple[int, ...], writes: int, leaders: int
) -> None:
    survived = topic(*partitions, up=up).survives()
    assert (survived.writes, survived.leaders, survived.elections) == (writes, leaders, MANY)


def test_a_replica_that_left_the_isr_counts_only_where_it_may_lead() -> None:
    shrunk = part(isr=(1,), elr=(2,))
    assert topic(shrunk).survives().leaders == 1
    assert topic(shrunk, keeps_eligible=False).survives().leaders == 0


@pytest.mark.parametrize(
    ("voters", "up", "elections"),
    [
        ((1, 2, 3), (1, 2, 3), 1),
        ((1, 2, 3), (1, 2), 0),
        ((1,), (1, 2, 3), 0),
        ((101, 102, 103), (1, 2, 3), MANY),
        ((1, 102, 103), (1, 2, 3), MANY),
        ((), (1, 2, 3), MANY),
        ((1, 2, 3, 4, 5), (1, 2, 3), 2),
    ],
)
def test_brokers_that_are_controllers_are_needed_for_elections(
    voters: tuple[int, ...], up: tuple[int, ...], elections: int
) -> None:
    assert topic(voters=voters, up=up).survives().elections == elections


def test_a_rack_costs_what_only_its_brokers_have() -> None:
    assert topic(brokers=RACKS).racks_for_writes() == []
    two_in_east = topic(brokers={1: "east", 2: "east", 3: "west"})
    assert (two_in_east.racks_for_writes(), two_in_east.racks_for_leaders()) == (["east"], [])
    shrunk = topic(part(isr=(1,), elr=()), brokers=RACKS)
    assert (shrunk.racks_for_writes(), shrunk.racks_for_leaders()) == ([], ["east"]), "writes are refused already"
