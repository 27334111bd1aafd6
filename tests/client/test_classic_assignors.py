"""The assignors of the classic protocol: every partition goes to exactly one member that reads its topic."""

import pytest

from quire.client.classic_assignors import ASSIGNORS, assign_in_turn, assign_ranges
from quire.client.offsets import TopicPartition


def test_range_gives_each_member_a_run_of_each_topic() -> None:
    assigned = assign_ranges({"b": ["t"], "a": ["t"]}, {"t": 5})
    assert [partition for _, partition in assigned["a"]] == [0, 1, 2]
    assert [partition for _, partition in assigned["b"]] == [3, 4]


def test_round_robin_continues_with_the_next_member_at_the_next_topic() -> None:
    assigned = assign_in_turn({"a": ["t", "u"], "b": ["t", "u"]}, {"t": 1, "u": 1})
    assert assigned == {"a": [TopicPartition("t", 0)], "b": [TopicPartition("u", 0)]}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_each_partition_goes_to_one_member_that_subscribes_to_its_topic(name: str) -> None:
    subscriptions = {"a": ["t"], "b": ["t", "u"], "c": ["u", "deleted"], "d": []}
    assigned = ASSIGNORS[name](subscriptions, {"t": 7, "u": 3})
    given = sorted((partition, member) for member, partitions in assigned.items() for partition in partitions)
    assert [partition for partition, _ in given] == [
        TopicPartition(t, n) for t, count in (("t", 7), ("u", 3)) for n in range(count)
    ]
    assert all(partition.topic in subscriptions[member] for partition, member in given)
    assert set(assigned) == set(subscriptions), "a member without partitions has an assignment too"
