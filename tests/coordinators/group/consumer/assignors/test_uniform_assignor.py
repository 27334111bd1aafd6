"""Uniform: complete, as even as subscriptions allow, with as few moves as possible."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.coordinators.group.consumer.assignors import AssignedMember, Assignment, Assignor, load_levelling, turns
from quire.coordinators.group.consumer.assignors.assignor import MemberSet, PartitionCounts
from quire.coordinators.group.consumer.assignors.holdings import Holdings
from quire.coordinators.group.consumer.assignors.range_assignor import ranges_in_turns
from quire.coordinators.group.consumer.assignors.uniform_assignor import assign_uniformly, uniform_in_turns
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


def test_a_member_that_gives_up_partitions_keeps_some_of_every_topic() -> None:
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
def test_when_topics_grow_no_member_loses_a_partition(size: int, counts: dict[bytes, int], more: list[int]) -> None:
    group = members(*map(str, range(size)), topics=range(5))
    before = assign_uniformly(group, counts)
    grown = {topic(number): counts.get(topic(number), 0) + extra for number, extra in enumerate(more)}
    after = assign_uniformly(holding(group, before), grown)
    check_complete(group, grown, after)
    assert moved(before, after) == 0


def fewest_squares(group: Members, counts: PartitionCounts) -> int:
    """The most even loads, computed in the simplest way: as long as a partition can move from one member to another
    with at least two fewer, directly or through members that pass on one of their own, it moves."""
    held: dict[str, list[bytes]] = {name: [] for name in sorted(group)}
    readers = {each: [name for name in held if each in group[name].topics] for each in counts}
    for each, names in readers.items():
        if names:
            held[names[0]] += [each] * counts[each]
    while any(passes_one_on(held, readers, fullest) for fullest in held):
        pass
    return sum(len(topics) ** 2 for topics in held.values())


def passes_one_on(held: dict[str, list[bytes]], readers: dict[bytes, list[str]], fullest: str) -> bool:
    origins: dict[str, tuple[str, bytes]] = {}
    queue = [fullest]
    for name in queue:
        for each in sorted(set(held[name])):
            for reader in readers[each]:
                if reader != fullest and reader not in origins:
                    origins[reader] = name, each
                    queue.append(reader)
    taker = min(queue, key=lambda name: len(held[name]))
    if len(held[taker]) > len(held[fullest]) - 2:
        return False
    while taker != fullest:
        giver, each = origins[taker]
        held[giver].remove(each)
        held[taker].append(each)
        taker = giver
    return True


@given(any_group(most_members=9, most_topics=7), counts_of_topics(most_topics=7, most_partitions=40))
def test_it_is_as_even_as_the_simplest_way_there_is(group: Members, counts: PartitionCounts) -> None:
    assigned = assign_uniformly(group, counts)
    check_complete(group, counts, assigned)
    assert sum(load(assignment) ** 2 for assignment in assigned.values()) == fewest_squares(group, counts)


@given(any_group(), counts_of_topics(), st.data())
def test_no_more_partitions_move_than_were_free(group: Members, counts: PartitionCounts, data: st.DataObject) -> None:
    """Also if subscriptions differ, and members lack some partitions of an even assignment."""
    assigned = assign_uniformly(group, counts)
    lost = {name: frozenset(data.draw(st.sets(st.integers(0, 11)))) for name in group}
    before: dict[str, Assignment] = {
        name: {each: left for each, numbers in assignment.items() if (left := numbers - lost[name])}
        for name, assignment in assigned.items()
    }
    after = assign_uniformly(holding(group, before), counts)
    given_up = sum(load(assigned[name]) - load(before[name]) for name in group)
    assert moved(before, after) <= given_up
    check_complete(group, counts, after)


def test_four_hundred_members_of_which_half_are_new_take_few_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each full member has to pass on half of its 396 partitions, and must not do so one by one."""
    searches = 0
    search = load_levelling._search

    def counted(
        holdings: Holdings, giver: int, among: MemberSet, takers: MemberSet
    ) -> tuple[load_levelling._Path | None, MemberSet]:
        nonlocal searches
        searches += 1
        return search(holdings, giver, among, takers)

    monkeypatch.setattr(load_levelling, "_search", counted)
    counts = {topic(number): 200 for number in range(396)}
    group = {
        f"member-{position:03}": AssignedMember(frozenset(topic((position + step) % 396) for step in range(10)), {})
        for position in range(400)
    }
    half = assign_uniformly({name: group[name] for name in sorted(group)[::2]}, counts)
    searches = 0
    assigned = assign_uniformly(holding(group, half), counts)
    check_complete(group, counts, assigned)
    assert {load(assignment) for assignment in assigned.values()} == {198}
    assert searches < 10 * len(group)


@pytest.mark.parametrize("in_turns", [uniform_in_turns, ranges_in_turns])
def test_no_turn_does_more_than_its_share(in_turns: Assignor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WORK_PER_TURN", 100)
    counts = {topic(number): 50 for number in range(40)}
    group = {
        f"member-{position:03}": AssignedMember(frozenset(topic((position + step) % 40) for step in range(5)), {})
        for position in range(40)
    }
    assert sum(1 for _ in in_turns(group, counts)) > 40 * 50 // 100


def test_members_without_subscriptions_and_groups_without_members_get_nothing() -> None:
    assert assign_uniformly({}, {topic(0): 3}) == {}
    assert assign_uniformly(members("a", topics=[]), {topic(0): 3}) == {"a": {}}
    assert assign_uniformly(members("a", topics=[0]), {}) == {"a": {}}
