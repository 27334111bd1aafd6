"""Range: complete, even within each topic, the same partition numbers of co-partitioned topics, and sticky."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from quire.coordinators.group.consumer.assignors.assignor import PartitionCounts
from quire.coordinators.group.consumer.assignors.range_assignor import assign_ranges
from tests.coordinators.group.consumer.assignors.groups_to_assign import (
    Members,
    any_group,
    check_complete,
    counts_of_topics,
    holding,
    members,
    partitions,
    topic,
)


def test_members_that_have_nothing_yet_get_ranges_in_order() -> None:
    assigned = assign_ranges(members("a", "b", "c", topics=[0, 1]), {topic(0): 7, topic(1): 2})
    assert assigned == {
        "a": {topic(0): frozenset([0, 1, 2]), topic(1): frozenset([0])},
        "b": {topic(0): frozenset([3, 4]), topic(1): frozenset([1])},
        "c": {topic(0): frozenset([5, 6])},
    }


def test_an_existing_member_keeps_the_first_numbers_of_its_range() -> None:
    group = members("a", "b", topics=[0])
    before = assign_ranges(group, {topic(0): 6})
    after = assign_ranges(holding(group, before) | members("c", topics=[0]), {topic(0): 6})
    assert after == {
        "a": {topic(0): frozenset([0, 1])},
        "b": {topic(0): frozenset([3, 4])},
        "c": {topic(0): frozenset([2, 5])},
    }


def test_a_new_topic_follows_the_numbers_of_one_that_is_alike() -> None:
    group = members("a", "b", topics=[0, 1])
    held = {"a": {topic(1): frozenset([1, 3])}, "b": {topic(1): frozenset([0, 2])}}
    after = assign_ranges(holding(group, held), {topic(0): 4, topic(1): 4})
    assert after["a"] == {topic(0): frozenset([1, 3]), topic(1): frozenset([1, 3])}
    assert after["b"] == {topic(0): frozenset([0, 2]), topic(1): frozenset([0, 2])}


@given(any_group(), counts_of_topics())
def test_every_partition_has_one_owner_that_subscribes_to_it(group: Members, counts: PartitionCounts) -> None:
    check_complete(group, counts, assign_ranges(group, counts))


@given(any_group(), counts_of_topics())
def test_subscribers_of_a_topic_differ_by_at_most_one_partition(group: Members, counts: PartitionCounts) -> None:
    assigned = assign_ranges(group, counts)
    for each in counts:
        sizes = [len(assigned[name].get(each, ())) for name, member in group.items() if each in member.topics]
        assert not sizes or max(sizes) - min(sizes) <= 1


@given(any_group(), counts_of_topics(most_partitions=4))
def test_topics_that_are_alike_have_the_same_owner_for_the_same_number(group: Members, counts: PartitionCounts) -> None:
    assigned = assign_ranges(group, counts)
    owners = defaultdict(set)
    for name, assignment in assigned.items():
        for each, number in partitions(assignment):
            audience = tuple(other for other in sorted(group) if each in group[other].topics)
            owners[audience, counts[each], number].add(name)
    assert all(len(names) == 1 for names in owners.values())


@given(any_group(), counts_of_topics())
def test_the_order_in_which_members_come_does_not_matter(group: Members, counts: PartitionCounts) -> None:
    assert assign_ranges(dict(reversed(group.items())), counts) == assign_ranges(group, counts)


@given(any_group(), counts_of_topics())
def test_assigning_again_changes_nothing(group: Members, counts: PartitionCounts) -> None:
    assigned = assign_ranges(group, counts)
    assert assign_ranges(holding(group, assigned), counts) == assigned


@given(st.integers(2, 8), st.data(), counts_of_topics())
def test_a_member_loses_only_what_its_share_of_a_topic_no_longer_holds(
    size: int, data: st.DataObject, counts: PartitionCounts
) -> None:
    group = members(*map(str, range(size)), topics=range(5))
    before = assign_ranges(group, counts)
    now = holding(group, before)
    if data.draw(st.booleans()):
        now |= members("new", topics=range(5))
    else:
        del now[data.draw(st.sampled_from(sorted(now)))]
    after = assign_ranges(now, counts)
    for name in before.keys() & after.keys():
        for each in counts:
            had, has = before[name].get(each, frozenset()), after[name].get(each, frozenset())
            assert len(had & has) == min(len(had), len(has))
