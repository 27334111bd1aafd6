"""Plans for any cluster: no broker twice, nothing lost, nothing worse than before, and no more copies than needed."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quire.client.placement.model import Change, Limits, Node, Placement, PlacementError
from quire.client.placement.planner import balance, drain, refactor, spread

MB = 1_000_000


class Model(NamedTuple):
    nodes: list[Node]
    partitions: list[Placement]

    @property
    def ids(self) -> list[int]:
        return [each.broker_id for each in self.nodes]


@st.composite
def clusters(draw: st.DrawFn, *, racks: bool = True, sizes: bool = True, fewest: int = 1) -> Model:
    count = draw(st.integers(fewest, 7))
    rack_names = st.sampled_from(["a", "b", "c"]) if racks and draw(st.booleans()) else st.none()
    nodes = [Node(broker, draw(rack_names)) for broker in range(1, count + 1)]
    factor = draw(st.integers(1, min(3, count)))
    size = st.integers(0, 1000) if sizes else st.just(0)
    replicas = st.permutations(range(1, count + 1)).map(lambda order: tuple(order[:factor]))
    partitions = [
        Placement(draw(st.sampled_from(["audit", "orders"])), index, draw(replicas), draw(size))
        for index in range(draw(st.integers(0, 30)))
    ]
    return Model(nodes, partitions)


def after(partitions: Sequence[Placement], changes: Sequence[Change]) -> list[Placement]:
    changed = {(each.before.topic, each.before.partition): each for each in changes}
    assert len(changed) == len(changes), "each partition is changed once"
    return [each._replace(replicas=changed[each[:2]].replicas) if each[:2] in changed else each for each in partitions]


def copies(changes: Sequence[Change]) -> int:
    return sum(len(each.adding) for each in changes)


def is_sound(before: Sequence[Placement], later: Sequence[Placement]) -> bool:
    return all(
        len(set(new.replicas)) == len(new.replicas) == len(old.replicas) for old, new in zip(before, later, strict=True)
    )


def counts(ids: Sequence[int], partitions: Sequence[Placement]) -> list[int]:
    found = Counter(broker for each in partitions for broker in each.replicas)
    return [found[each] for each in ids]


def leads(ids: Sequence[int], partitions: Sequence[Placement]) -> list[int]:
    found = Counter(each.replicas[0] for each in partitions)
    return [found[each] for each in ids]


def used(ids: Sequence[int], partitions: Sequence[Placement]) -> list[int]:
    found: Counter[int] = Counter()
    for each in partitions:
        for broker in each.replicas:
            found[broker] += each.size_bytes
    return [found[each] for each in ids]


def gap(values: Sequence[int]) -> int:
    return max(values) - min(values)


def missing_racks(model: Model, partitions: Sequence[Placement]) -> int:
    rack = {each.broker_id: each.rack for each in model.nodes}
    most = len(set(rack.values()))
    return sum(min(len(each.replicas), most) - len({rack[broker] for broker in each.replicas}) for each in partitions)


@given(clusters())
def test_balancing_makes_nothing_worse(model: Model) -> None:
    later = after(model.partitions, balance(model.nodes, model.partitions))
    assert is_sound(model.partitions, later)
    assert missing_racks(model, later) <= missing_racks(model, model.partitions)
    if missing_racks(model, model.partitions) == 0:
        assert gap(counts(model.ids, later)) <= gap(counts(model.ids, model.partitions))


@given(clusters(racks=False))
def test_balanced_replicas_and_leaderships_differ_by_one_at_most(model: Model) -> None:
    later = after(model.partitions, balance(model.nodes, model.partitions))
    assert gap(counts(model.ids, later)) <= 1
    if len({len(each.replicas) for each in later} - {len(model.ids)}) == 0:
        assert gap(leads(model.ids, later)) <= 1, "with a replica everywhere, any broker can lead"


@given(clusters(racks=False))
def test_with_even_replicas_the_disks_get_more_even_too(model: Model) -> None:
    even = after(model.partitions, balance(model.nodes, [each._replace(size_bytes=0) for each in model.partitions]))
    assume(gap(counts(model.ids, even)) <= 1)
    later = after(even, balance(model.nodes, even))
    assert gap(used(model.ids, later)) <= gap(used(model.ids, even))


@given(clusters(racks=False, sizes=False))
def test_no_more_replicas_are_copied_than_even_counts_need(model: Model) -> None:
    before = counts(model.ids, model.partitions)
    low, rest = divmod(sum(before), len(before))
    too_many = sum(max(0, each - low - 1) for each in before) if rest else sum(max(0, each - low) for each in before)
    too_few = sum(max(0, low - each) for each in before)
    assert copies(balance(model.nodes, model.partitions)) == max(too_many, too_few)


@given(clusters())
def test_a_balanced_cluster_stays_as_it_is(model: Model) -> None:
    even = after(model.partitions, balance(model.nodes, model.partitions))
    assert copies(balance(model.nodes, even)) == 0 or any(each.size_bytes for each in even)
    same_size = [each._replace(size_bytes=0) for each in even]
    again = after(same_size, balance(model.nodes, same_size))
    assert copies(balance(model.nodes, again)) == 0


@given(clusters(), st.integers(0, 20), st.integers(0, 5000))
def test_limits_hold_and_what_is_left_is_not_worse(model: Model, replicas: int, size_bytes: int) -> None:
    changes = balance(model.nodes, model.partitions, Limits(replicas, size_bytes))
    later = after(model.partitions, changes)
    assert copies(changes) <= replicas
    assert sum(each.copied_bytes for each in changes) <= size_bytes
    assert is_sound(model.partitions, later)
    assert missing_racks(model, later) <= missing_racks(model, model.partitions)


@given(clusters(fewest=2), st.data())
def test_draining_leaves_nothing_and_moves_nothing_else(model: Model, data: st.DataObject) -> None:
    drained = data.draw(st.sampled_from(model.ids))
    factor = max((len(each.replicas) for each in model.partitions), default=1)
    assume(factor < len(model.ids))
    changes = drain(model.nodes, model.partitions, [drained])
    later = after(model.partitions, changes)
    assert is_sound(model.partitions, later)
    assert not any(drained in each.replicas for each in later)
    assert copies(changes) == counts([drained], model.partitions)[0]
    assert all(each.removing == (drained,) for each in changes)


@given(clusters(fewest=2), st.data())
def test_replicas_are_on_the_given_brokers_only(model: Model, data: st.DataObject) -> None:
    targets = data.draw(st.sets(st.sampled_from(model.ids), min_size=1))
    factor = max((len(each.replicas) for each in model.partitions), default=1)
    assume(factor <= len(targets))
    later = after(model.partitions, spread(model.nodes, model.partitions, targets))
    assert is_sound(model.partitions, later)
    assert all(targets.issuperset(each.replicas) for each in later)
    if all(each.rack is None for each in model.nodes):
        assert gap(counts(sorted(targets), later)) <= 1


@given(clusters(), st.integers(1, 5))
def test_another_replication_factor_keeps_what_it_can(model: Model, factor: int) -> None:
    assume(factor <= len(model.ids))
    changes = refactor(model.nodes, model.partitions, factor)
    later = after(model.partitions, changes)
    assert all(len(set(each.replicas)) == len(each.replicas) == factor for each in later)
    for each in changes:
        assert not (each.adding and each.removing)


@given(clusters())
def test_the_same_cluster_gets_the_same_plan(model: Model) -> None:
    assert balance(model.nodes, model.partitions) == balance(list(reversed(model.nodes)), model.partitions)


# --- Cases


def test_a_new_broker_gets_its_part_and_nothing_else_moves() -> None:
    nodes = [Node(each) for each in (1, 2, 3, 4)]
    partitions = [Placement("t", index, ((1, 2, 3) * 2)[index % 3 : index % 3 + 3], 10) for index in range(40)]
    changes = balance(nodes, partitions)
    later = after(partitions, changes)
    assert (counts([1, 2, 3, 4], later), leads([1, 2, 3, 4], later)) == ([30] * 4, [10] * 4)
    assert copies(changes) == 30 and all(each.adding in ((), (4,)) for each in changes)


def test_leaderships_become_even_without_a_copy() -> None:
    nodes = [Node(each) for each in (1, 2, 3)]
    partitions = [Placement("t", index, (1, 2, 3), 10) for index in range(9)]
    changes = balance(nodes, partitions)
    assert copies(changes) == 0
    assert leads([1, 2, 3], after(partitions, changes)) == [3, 3, 3]


def test_a_leadership_is_passed_on_over_other_brokers() -> None:
    nodes = [Node(each) for each in (1, 2, 3)]
    partitions = [Placement("t", each, (1, 2)) for each in range(3)] + [Placement("t", each, (2, 3)) for each in (3, 4)]
    changes = balance(nodes, [*partitions, Placement("t", 5, (3, 1))])
    assert leads([1, 2, 3], after([*partitions, Placement("t", 5, (3, 1))], changes)) == [2, 2, 2]


def test_large_partitions_are_exchanged_for_small_ones() -> None:
    nodes = [Node(1), Node(2)]
    partitions = [Placement("t", each, (1,), 100 * MB) for each in range(4)]
    partitions += [Placement("t", each, (2,), MB) for each in range(4, 8)]
    changes = balance(nodes, partitions)
    later = after(partitions, changes)
    assert counts([1, 2], later) == [4, 4]
    assert gap(used([1, 2], later)) <= 0.1 * 202 * MB
    assert sum(each.copied_bytes for each in changes) == 202 * MB


def test_each_rack_gets_a_replica() -> None:
    nodes = [Node(1, "a"), Node(2, "a"), Node(3, "b"), Node(4, "b")]
    partitions = [Placement("t", each, (1, 2)) for each in range(4)]
    later = after(partitions, balance(nodes, partitions))
    assert missing_racks(Model(nodes, []), later) == 0
    assert counts([1, 2, 3, 4], later) == [2, 2, 2, 2]


def test_a_small_rack_is_not_left_for_even_counts() -> None:
    nodes = [Node(1, "a"), Node(2, "b"), Node(3, "b")]
    partitions = [Placement("t", each, (1, 2 + each % 2)) for each in range(8)]
    assert copies(balance(nodes, partitions)) == 0


def test_what_does_not_fit_is_refused() -> None:
    nodes = [Node(1), Node(2, free_bytes=5)]
    with pytest.raises(PlacementError, match=r"t-0 \(10 bytes\) fits on no other broker"):
        drain(nodes, [Placement("t", 0, (1,), 10)], [1])
    assert drain(nodes, [Placement("t", 0, (1,), 5)], [1])
    with pytest.raises(PlacementError, match="fits on no other broker"):
        drain(nodes, [Placement("t", 0, (1,), 3), Placement("t", 1, (1,), 3)], [1])
    assert balance(nodes, [Placement("t", each, (1,), 6) for each in range(4)]) == []


def test_draining_is_refused_if_a_partition_would_have_too_few_replicas() -> None:
    nodes = [Node(each) for each in (1, 2, 3)]
    with pytest.raises(PlacementError, match="t-0 needs 3 replicas, and only these brokers may have one: 1, 2;"):
        drain(nodes, [Placement("t", 0, (1, 2, 3))], [3])
    with pytest.raises(PlacementError, match="no broker would be left"):
        drain([Node(1)], [Placement("t", 0, (1,))], [1])


def test_brokers_that_are_not_up_are_named() -> None:
    with pytest.raises(PlacementError, match="broker 7 is not up, or does not exist; brokers that are up: 1, 2"):
        spread([Node(1), Node(2)], [], [2, 7])


def test_replicas_on_a_broker_that_is_down_stay() -> None:
    nodes = [Node(1), Node(2), Node(3)]
    (change,) = drain(nodes, [Placement("t", 0, (1, 9))], [1])
    assert change.replicas == (2, 9)
    assert balance(nodes, [Placement("t", 0, (9,)), Placement("t", 1, (9,))]) == []
    (change,) = refactor(nodes, [Placement("t", 0, (1, 9, 2))], 2)
    assert change.replicas == (1, 2), "it is the first to go if there are to be fewer"


@pytest.mark.parametrize("racks", [1, 3])
def test_seven_thousand_partitions_are_planned_in_seconds(racks: int) -> None:
    """Measured: less than a second. The limit leaves room for a busy machine."""
    nodes = [Node(each, "abc"[each % racks]) for each in range(1, 8)]
    partitions = [
        Placement(f"t{index % 70}", index, tuple(1 + (index + step) % 6 for step in range(3)), index * 37 % 5000)
        for index in range(7000)
    ]
    started = time.process_time()
    later = after(partitions, balance(nodes, partitions))
    assert time.process_time() - started < 10
    ids = [each.broker_id for each in nodes]
    assert missing_racks(Model(nodes, []), later) == 0
    if racks == 1:
        assert (gap(counts(ids, later)), gap(leads(ids, later))) == (0, 0)
        assert gap(used(ids, later)) <= 0.1 * sum(used(ids, later)) / len(ids)
