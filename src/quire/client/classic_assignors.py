"""The assignors of the classic protocol: there the leader, one of the members, divides the partitions.

Every client has these two, under these names: `range` gives each member a run of each topic's partitions, `roundrobin`
assigns the partitions of all topics one by one in turn. Both depend on nothing but their arguments.
"""

from collections.abc import Callable, Mapping, Sequence

from quire.client.offsets import TopicPartition

Subscriptions = Mapping[str, Sequence[str]]
"""The topics of each member, by member id."""
PartitionCounts = Mapping[str, int]
"""The number of partitions of each topic that exists."""
Assignments = dict[str, list[TopicPartition]]
Assignor = Callable[[Subscriptions, PartitionCounts], Assignments]


def assign_ranges(subscriptions: Subscriptions, counts: PartitionCounts) -> Assignments:
    assigned: Assignments = {member: [] for member in subscriptions}
    for topic in _topics(subscriptions, counts):
        readers = sorted(member for member, topics in subscriptions.items() if topic in topics)
        each, more = divmod(counts[topic], len(readers))
        first = 0
        for index, member in enumerate(readers):
            end = first + each + (index < more)
            assigned[member] += [TopicPartition(topic, partition) for partition in range(first, end)]
            first = end
    return assigned


def assign_in_turn(subscriptions: Subscriptions, counts: PartitionCounts) -> Assignments:
    assigned: Assignments = {member: [] for member in subscriptions}
    members = sorted(subscriptions)
    next_member = 0
    for topic in _topics(subscriptions, counts):
        for partition in range(counts[topic]):
            while topic not in subscriptions[members[next_member]]:
                next_member = (next_member + 1) % len(members)
            assigned[members[next_member]].append(TopicPartition(topic, partition))
            next_member = (next_member + 1) % len(members)
    return assigned


def _topics(subscriptions: Subscriptions, counts: PartitionCounts) -> list[str]:
    return sorted({topic for topics in subscriptions.values() for topic in topics if topic in counts})


ASSIGNORS: dict[str, Assignor] = {"range": assign_ranges, "roundrobin": assign_in_turn}
