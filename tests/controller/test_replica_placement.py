"""Replicas are placed on different racks, and evenly."""

from collections import Counter

import pytest

from quire.controller.replica_placement import place_replicas
from quire.metadata.image import BrokerImage
from quire.protocol.errors import ApiError, ErrorCode
from simulator.random import SimRandom


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[BrokerImage]:
    """Brokers 0, 1, ... in these racks."""
    return [
        BrokerImage(id_, epoch=1, incarnation_id=bytes(16), rack=rack, fenced=id_ in fenced)
        for id_, rack in enumerate(racks)
    ]


def test_the_replicas_of_a_partition_are_on_different_brokers() -> None:
    for replicas in place_replicas(brokers(*[None] * 5), 50, 3, SimRandom(1)):
        assert len(set(replicas)) == 3


@pytest.mark.parametrize("racks", ["aa", "aaaaa", "aabb", "aabbcc", "abc", "aaabbb"])
@pytest.mark.parametrize("replication_factor", [1, 2])
def test_leaders_and_replicas_spread_evenly(racks: str, replication_factor: int) -> None:
    placed = place_replicas(brokers(*racks), 60, replication_factor, SimRandom(1))
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders.values()) == {60 // len(racks)}
    held = Counter(each for replicas in placed for each in replicas)
    assert max(held.values()) - min(held.values()) <= 4


def test_replicas_are_on_as_many_racks_as_there_are() -> None:
    racks = ["a", "a", "b", "b", "c"]
    for replicas in place_replicas(brokers(*racks), 30, 3, SimRandom(2)):
        assert {racks[each] for each in replicas} == {"a", "b", "c"}


def test_more_replicas_than_racks_double_up() -> None:
    racks = ["a", "a", "b", "b"]
    for replicas in place_replicas(brokers(*racks), 10, 3, SimRandom(2)):
        assert len(set(replicas)) == 3
        assert {racks[each] for each in replicas} == {"a", "b"}


def test_a_fenced_broker_is_the_last_choice_and_never_leads() -> None:
    for replicas in place_replicas(brokers(None, None, None, fenced=(1,)), 10, 2, SimRandom(1)):
        assert 1 not in replicas
    for replicas in place_replicas(brokers(None, None, None, fenced=(1,)), 10, 3, SimRandom(1)):
        assert replicas[-1] == 1


def test_the_same_chance_gives_the_same_placement() -> None:
    first = place_replicas(brokers(*[None] * 5), 10, 3, SimRandom(9))
    assert place_replicas(brokers(*[None] * 5), 10, 3, SimRandom(9)) == first


def test_too_few_brokers_are_too_few() -> None:
    with pytest.raises(ApiError, match=r"by 1 broker$"):
        place_replicas(brokers(None), 1, 3, SimRandom(1))
    with pytest.raises(ApiError, match=r"by 2 brokers$") as refused:
        place_replicas(brokers(None, None), 1, 3, SimRandom(1))
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_broker_that_leaves_or_has_cordoned_its_disks_takes_no_replicas() -> None:
    leaving = BrokerImage(7, epoch=1, incarnation_id=bytes(16), fenced=False, in_controlled_shutdown=True)
    cordoned = BrokerImage(
        8, epoch=1, incarnation_id=bytes(16), fenced=False, log_dirs=(b"d" * 16,), cordoned_log_dirs=(b"d" * 16,)
    )
    placed = place_replicas([*brokers(None), leaving, cordoned], 5, 1, SimRandom(1))
    assert placed == [[0]] * 5
