"""Holdings: who has which partitions during a uniform assignment. Members are positions in the sorted member ids.

Partitions are grouped by audience, because only the audience decides which members can have a partition. A member gives
away partitions that it did not have before first, so that few partitions move. Of the others it gives away one of the
topic of which it has most, so that it keeps some of every topic.
"""

from collections.abc import Iterable, Sequence

from quire.coordinators.group.consumer.assignors.assignor import Assignment, Audience

Partition = tuple[bytes, int]
"""(topic id, partition number)"""

Held = dict[int, list[Partition]]
"""Partitions by the index of the audience."""


class Holdings:
    __slots__ = ("_kept", "_new", "_sorted", "audiences", "gives", "loads")

    def __init__(self, audiences: Sequence[Audience], member_count: int) -> None:
        self.audiences = audiences
        self.loads = [0] * member_count
        self.gives = [0] * member_count
        """For each member, the audiences of its partitions, as the bits of an integer."""
        self._kept: list[Held] = [{} for _ in range(member_count)]
        self._new: list[Held] = [{} for _ in range(member_count)]
        self._sorted: set[tuple[int, int]] = set()
        """Members and audiences whose kept partitions are sorted. The last one is given away first."""

    def keep(self, member: int, audience: int, topic: bytes, numbers: Iterable[int]) -> None:
        """The member keeps these partitions."""
        partitions = [(topic, number) for number in numbers]
        if partitions:
            self._kept[member].setdefault(audience, []).extend(partitions)
            self._added(member, audience, len(partitions))

    def add(self, member: int, audience: int, partition: Partition) -> None:
        self._new[member].setdefault(audience, []).append(partition)
        self._added(member, audience, 1)

    def count(self, member: int, audience: int) -> int:
        return len(self._kept[member].get(audience, ())) + len(self._new[member].get(audience, ()))

    def take(self, giver: int, audience: int, count: int) -> list[Partition]:
        """Takes `count` partitions of the audience from the member."""
        taken = _popped(self._new[giver].get(audience, []), count)
        if len(taken) < count:
            kept = self._kept[giver].get(audience, [])
            if (giver, audience) not in self._sorted:
                self._sorted.add((giver, audience))
                _sort_by_turn(kept)
            taken += _popped(kept, count - len(taken))
        self.loads[giver] -= len(taken)
        if not self.count(giver, audience):
            self.gives[giver] &= ~(1 << audience)
        return taken

    def move(self, giver: int, receiver: int, audience: int, count: int) -> None:
        """Moves `count` partitions of the audience from one of its members to another."""
        moved = self.take(giver, audience, count)
        self._new[receiver].setdefault(audience, []).extend(moved)
        self._added(receiver, audience, len(moved))

    def assignment(self, member: int) -> Assignment:
        by_topic: dict[bytes, list[int]] = {}
        for held in (self._kept[member], self._new[member]):
            for partitions in held.values():
                for topic, number in partitions:
                    by_topic.setdefault(topic, []).append(number)
        return {topic: frozenset(numbers) for topic, numbers in by_topic.items()}

    def _added(self, member: int, audience: int, count: int) -> None:
        self.loads[member] += count
        self.gives[member] |= 1 << audience


def _popped(partitions: list[Partition], count: int) -> list[Partition]:
    """Removes the last `count` partitions, in reverse order."""
    popped = partitions[: -count - 1 : -1]
    del partitions[len(partitions) - len(popped) :]
    return popped


def _sort_by_turn(partitions: list[Partition]) -> None:
    """One of each topic, then the next one of each. So the end has the topics with most partitions."""
    seen: dict[bytes, int] = {}
    turns: dict[Partition, int] = {}
    for topic, number in partitions:
        turns[topic, number] = seen[topic] = seen.get(topic, 0) + 1
    partitions.sort(key=lambda partition: (turns[partition], partition[0]))
