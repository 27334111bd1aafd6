"""What an assignor is asked and what it answers, and the one thing all of them need to know."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id. No topic is there without a partition."""


class AssignedMember(NamedTuple):
    """`topics` it subscribes to, by id; `held` are the partitions it was assigned last."""

    topics: frozenset[bytes]
    held: Assignment


PartitionCounts = Mapping[bytes, int]
Assignor = Callable[[Mapping[str, AssignedMember], PartitionCounts], dict[str, Assignment]]
"""(members by id, partitions of each existing topic) -> an assignment for each member."""

Audience = tuple[int, ...]
"""The members that subscribe to a topic, as positions in the sorted member ids."""


def topics_by_audience(members: list[AssignedMember], counts: PartitionCounts) -> dict[Audience, list[bytes]]:
    """Topics that the same members subscribe to, together; those with the fewest subscribers first."""
    audiences: dict[bytes, list[int]] = {}
    for position, member in enumerate(members):
        for topic in member.topics:
            if counts.get(topic):
                audiences.setdefault(topic, []).append(position)
    together: dict[Audience, list[bytes]] = {}
    for topic in sorted(audiences):
        together.setdefault(tuple(audiences[topic]), []).append(topic)
    return dict(sorted(together.items(), key=lambda item: (len(item[0]), item[0])))
