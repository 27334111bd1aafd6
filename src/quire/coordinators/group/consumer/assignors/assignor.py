"""What an assignor is asked and what it answers, and the one thing all of them need to know."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from quire.coordinators.group.consumer.assignors.turns import Pace, Turns

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id. No topic is there without a partition."""


class AssignedMember(NamedTuple):
    """`topics` it subscribes to, by id; `held` are the partitions it was assigned last."""

    topics: frozenset[bytes]
    held: Assignment


PartitionCounts = Mapping[bytes, int]
Assignor = Callable[[Mapping[str, AssignedMember], PartitionCounts], Turns[dict[str, Assignment]]]
"""(members by id, partitions of each existing topic) -> an assignment for each member, in turns."""

MemberSet = int
"""Members as the bits of a number, numbered by their positions in the sorted member ids: sets of hundreds of members
are combined in one step."""


class Audience(NamedTuple):
    """The members that subscribe to these topics, to which no other member subscribes."""

    members: tuple[int, ...]
    member_set: MemberSet
    topics: list[bytes]


def positions(members: MemberSet) -> Iterator[int]:
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest


def audiences(members: list[AssignedMember], counts: PartitionCounts, pace: Pace) -> Turns[list[Audience]]:
    """Topics that the same members subscribe to, together; those with the fewest subscribers first."""
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
