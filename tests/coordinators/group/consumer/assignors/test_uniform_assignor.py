"""Uniform: complete, as even as subscriptions allow, and moving no more than that takes."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from quire.coordinators.group.consumer.assignors.assignor import PartitionCounts
from quire.coordinators.group.consumer.assignors.uniform_assignor import assign_uniformly
from tests.coordinators.group.consumer.assignors.groups_to_assign import (
    Members,
    any_group,
    check_complete,
    counts_of_topics,
    holding,
    load,
    members,
    moved,
    partitions,
    topic,
)


def test_each_topic_is_spread_over_members_that_have_nothing_yet() -> None:
    assigned = assign_uniformly(members("a", "b", "c", topics=[0, 1]), {topic(0): 3, topic(1): 3})
    assert assigned == {
        "a": {topic(0): frozenset([0]), topic(1): frozenset([0])},
        "b": {topic(0): frozenset([1]), topic(1): frozenset([1])},
        "c": {topic(0): frozenset([2]), topic(1): frozenset([2])},
    }


def test_whoever_gives_something_up_keeps_some_of_every_topic() -> None:
    everything = {topic(0): frozenset(range(4)), topic(1): frozenset(range(4))}
    assigned = assign_uniformly(members("a", "b", topics=[0, 1], held={"a": everything}), {topic(0): 4, topic(1): 4})
    assert assigned["a"] == {topic(0): frozenset([0, 1]), topic(1): frozenset([0, 1])}
    assert assigned["b"] == {topic(0): frozenset([2, 3]), topic(1): frozenset([2, 3])}


def test_a_partition_may_travel_through_a_member_in_between() -> None:
    group = members("a", topics=[0]) | members("b", topics=[0, 1]) | members("c", topics=[1])
    counts = {topic(0): 3, topic(1): 3}
    full = {"a": {topic(0): frozenset(range(3))}, "b": {topic(1): frozenset([0, 1])}, "c": {topic(1): frozenset([2])}}
    assigned = assign_uniformly(holding(group, full), counts)
    check_complete(group, counts, assigned)
    assert [load(assignment) for assignment in assigned.values()] == [2, 2, 2]
    assert moved(full, assigned) == 2


@given(any_group(), counts_of_topics())
def test_every_partition_has_one_owner_that_subscribes_to_it(group: Members, counts: PartitionCounts) -> None:
    check_complete(group, counts, assign_uniformly(group, counts))


@given(any_group(), counts_of_topics())
def test_the_order_in_which_members_come_does_not_matter(group: Members, counts: PartitionCounts) -> None:
    backwards = dict(reversed(group.items()))
    assert assign_uniformly(backwards, counts) == assign_uniformly(group, counts)


@given(any_group(), counts_of_topics())
def test_assigning_again_changes_nothing(group: Members, counts: PartitionCounts) -> None:
    assigned = assign_uniformly(group, counts)
    assert assign_uniformly(holding(group, assigned), counts) == assigned


@given(st.integers(1, 9), counts_of_topics())
def test_members_with_the_same_topics_differ_by_at_most_one_partition(size: int, counts: PartitionCounts) -> None:
    assigned = assign_uniformly(members(*map(str, range(size)), topics=range(5)), counts)
    loads = [load(assignment) for assignment in assigned.values()]
    assert max(loads) - min(loads) <= 1


@given(any_group(most_members=3, most_topics=3), counts_of_topics(most_topics=3, most_partitions=2))
def test_no_other_assignment_is_more_even(group: Members, counts: PartitionCounts) -> None:
    squares = sum(load(assignment) ** 2 for assignment in assign_uniformly(group, counts).values())
    choices = [
        [name for name in group if each in group[name].topics]
        for each in sorted(counts)
        for _ in range(counts[each])
        if any(each in member.topics for member in group.values())
    ]
    assert squares == min(sum(owners.count(name) ** 2 for name in group) for owners in product(*choices))


@given(st.integers(1, 8), counts_of_topics())
def test_a_member_that_joins_takes_only_its_share(size: int, counts: PartitionCounts) -> None:
    group = members(*map(str, range(size)), topics=range(5))
    before = assign_uniformly(group, counts)
    after = assign_uniformly(holding(group, before) | members("new", topics=range(5)), counts)
    assert moved(before, after) == load(after["new"])
    assert all(partitions(after[name]) <= partitions(before[name]) for name in group)


@given(st.integers(2, 8), st.data(), counts_of_topics())
def test_when_a_member_leaves_the_others_keep_what_they_have(
    size: int, data: st.DataObject, counts: PartitionCounts
) -> None:
    group = members(*map(str, range(size)), topics=range(5))
    before = assign_uniformly(group, counts)
    remaining = holding(group, before)
    del remaining[data.draw(st.sampled_from(sorted(group)))]
    after = assign_uniformly(remaining, counts)
    assert moved(before, after) == 0


@given(st.integers(1, 8), counts_of_topics(), st.lists(st.integers(0, 5), min_size=5, max_size=5))
def test_when_topics_grow_nobody_loses_a_partition(size: int, counts: dict[bytes, int], more: list[int]) -> None:
    group = members(*map(str, range(size)), topics=range(5))
    before = assign_uniformly(group, counts)
    grown = {topic(number): counts.get(topic(number), 0) + extra for number, extra in enumerate(more)}
    after = assign_uniformly(holding(group, before), grown)
    check_complete(group, grown, after)
    assert moved(before, after) == 0


def test_members_without_subscriptions_and_groups_without_members_get_nothing() -> None:
    assert assign_uniformly({}, {topic(0): 3}) == {}
    assert assign_uniformly(members("a", topics=[]), {topic(0): 3}) == {"a": {}}
    assert assign_uniformly(members("a", topics=[0]), {}) == {"a": {}}
