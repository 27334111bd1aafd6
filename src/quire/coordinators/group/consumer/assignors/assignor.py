"""The input and output of an assignor, and the audiences that both assignors need."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from quire.coordinators.group.consumer.assignors.turns import Pace, Turns

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id. No topic is empty."""


class AssignedMember(NamedTuple):
    """`topics` are the ids of its subscribed topics, `held` its partitions in the last target."""

    topics: frozenset[bytes]
    held: Assignment


PartitionCounts = Mapping[bytes, int]
Assignor = Callable[[Mapping[str, AssignedMember], PartitionCounts], Turns[dict[str, Assignment]]]
"""(members by id, number of partitions of each topic) -> an assignment for each member, in turns."""

MemberSet = int
"""A set of members as the bits of an integer, by their positions in the sorted member ids. So sets of hundreds of
members are combined in one operation."""


class Audience(NamedTuple):
    """Topics with the same subscribers, and these members."""

    members: tuple[int, ...]
    member_set: MemberSet
    topics: list[bytes]


def positions(members: MemberSet) -> Iterator[int]:
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest


def audiences(members: list[AssignedMember], counts: PartitionCounts, pace: Pace) -> Turns[list[Audience]]:
    """Groups topics by their subscribers. Topics with the fewest subscribers are first."""
    subscribers: dict[frozenset[bytes], MemberSet] = {}
    for position, member in enumerate(members):
        subscribers[member.topics] = subscribers.get(member.topics, 0) | 1 << position
    of_topic: dict[bytes, MemberSet] = {}
    for topics, member_set in subscribers.items():
        for topic in topics:
            of_topic[topic] = of_topic.get(topic, 0) | member_set
        if pace.is_turn_over(len(topics)):
            yield
    together: dict[MemberSet, list[bytes]] = {}
    for topic in sorted(of_topic):
        if counts.get(topic):
            together.setdefault(of_topic[topic], []).append(topic)
    found: list[Audience] = []
    for member_set, alike in together.items():
        found.append(Audience(tuple(positions(member_set)), member_set, alike))
        if pace.is_turn_over(len(found[-1].members)):
            yield
    return sorted(found, key=lambda audience: (len(audience.members), audience.members))
