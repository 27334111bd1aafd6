"""The `uniform` assignor: every member gets as many partitions as the others, whatever topics they are of.

Members that subscribe to the same topics differ by at most one partition. Where subscriptions differ, no partition
could go from a member to another, directly or through others that pass on one of theirs, and leave the two nearer to
each other: the loads are as even as the subscriptions allow.

1. Members keep what they have, as far as it still exists and they still subscribe to it.
2. Where all subscribe to the same, whoever has more than its share gives up the rest at once.
3. What nobody has goes to the subscriber that has least; topics with few subscribers first.
4. Where subscriptions differ, partitions then travel along chains from the fullest member to one with less.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace

from quire.coordinators.group.consumer.assignors.assignor import (
    AssignedMember,
    Assignment,
    Audience,
    PartitionCounts,
    topics_by_audience,
)

_WORTH_A_HEAP = 8
"""With fewer partitions to hand out, looking for the emptiest member each time is faster."""


def assign_uniformly(members: Mapping[str, AssignedMember], counts: PartitionCounts) -> dict[str, Assignment]:
    ids = sorted(members)
    balance = _Balance([members[id_] for id_ in ids], counts)
    if balance.is_homogeneous:
        balance.give_up_what_is_too_much()
    balance.hand_out_what_is_free()
    if not balance.is_homogeneous:
        balance.even_out()
    return {id_: balance.assignment(position) for position, id_ in enumerate(ids)}


class _Balance:
    """Who has what while it is being decided. Members are positions in the sorted ids."""

    def __init__(self, members: list[AssignedMember], counts: PartitionCounts) -> None:
        self._audiences = topics_by_audience(members, counts)
        self._audience_of = {topic: audience for audience, topics in self._audiences.items() for topic in topics}
        self._free = {topic: dict.fromkeys(range(counts[topic])) for topic in self._audience_of}
        self._held: list[dict[bytes, list[int]]] = [self._still_held(member) for member in members]
        self._loads = [sum(map(len, held.values())) for held in self._held]

    @property
    def is_homogeneous(self) -> bool:
        return all(len(audience) == len(self._held) for audience in self._audiences)

    def assignment(self, position: int) -> Assignment:
        return {topic: frozenset(partitions) for topic, partitions in self._held[position].items() if partitions}

    def _still_held(self, member: AssignedMember) -> dict[bytes, list[int]]:
        kept: dict[bytes, list[int]] = {}
        for topic, partitions in member.held.items():
            free = self._free.get(topic)
            if free is not None and topic in member.topics:
                found = sorted(partition for partition in partitions if partition in free)
                for partition in found:
                    del free[partition]
                if found:
                    kept[topic] = found
        return kept

    def give_up_what_is_too_much(self) -> None:
        """With the same topics for all, everybody's share is known from the start, and larger by one for some."""
        total = sum(self._loads) + sum(map(len, self._free.values()))
        share, larger_shares = divmod(total, len(self._held)) if self._held else (0, 0)
        # The members that have most keep the larger shares, so that the fewest partitions move.
        for position in sorted(range(len(self._held)), key=lambda position: (-self._loads[position], position)):
            allowed = share + (larger_shares > 0)
            if self._loads[position] > share:
                larger_shares -= larger_shares > 0
                self._give_up(position, self._loads[position] - allowed)

    def _give_up(self, position: int, count: int) -> None:
        """Each time of the topic that the member has most of, so that it keeps some of every topic."""
        held = self._held[position]
        fullest = [(-len(partitions), topic) for topic, partitions in held.items()]
        heapify(fullest)
        for _ in range(count):
            negative_size, topic = heappop(fullest)
            self._free[topic][held[topic].pop()] = None
            heappush(fullest, (negative_size + 1, topic))
        self._loads[position] -= count

    def hand_out_what_is_free(self) -> None:
        for audience, topics in self._audiences.items():
            free = [(topic, partition) for topic in topics for partition in sorted(self._free[topic])]
            if len(free) < _WORTH_A_HEAP:
                for topic, partition in free:
                    emptiest = min(audience, key=self._loads.__getitem__)
                    self._held[emptiest].setdefault(topic, []).append(partition)
                    self._loads[emptiest] += 1
            else:
                self._hand_out_many(audience, free)

    def _hand_out_many(self, audience: Audience, free: list[tuple[bytes, int]]) -> None:
        by_load = [(self._loads[position], position) for position in audience]
        heapify(by_load)
        for topic, partition in free:
            load, emptiest = by_load[0]
            self._held[emptiest].setdefault(topic, []).append(partition)
            heapreplace(by_load, (load + 1, emptiest))
        for load, position in by_load:
            self._loads[position] = load

    # Where subscriptions differ

    def even_out(self) -> None:
        """Looks for a chain from the fullest member to one with at least two partitions less. Whoever can be reached
        without finding one is done for good, with all that it reached: nothing could become more even among them."""
        undecided = set(range(len(self._held)))
        while undecided:
            fullest = max(undecided, key=lambda position: (self._loads[position], -position))
            origins: dict[int, tuple[int, bytes]] = {}
            emptier = self._search(fullest, origins)
            if emptier is None:
                undecided -= {fullest, *origins}
            else:
                self._pass_on(emptier, fullest, origins)

    def _search(self, fullest: int, origins: dict[int, tuple[int, bytes]]) -> int | None:
        """The nearest such member. `origins` says from whom each member on the way could get a partition of what."""
        enough = self._loads[fullest] - 2
        asked: set[Audience] = set()
        queue = [fullest]
        for position in queue:
            for topic in self._held[position]:
                audience = self._audience_of[topic]
                if audience in asked:
                    continue
                asked.add(audience)
                for receiver in audience:
                    if receiver != fullest and receiver not in origins:
                        origins[receiver] = position, topic
                        queue.append(receiver)
                emptiest = min(audience, key=self._loads.__getitem__)
                if self._loads[emptiest] <= enough:
                    return emptiest
        return None

    def _pass_on(self, receiver: int, fullest: int, origins: dict[int, tuple[int, bytes]]) -> None:
        self._loads[receiver] += 1
        self._loads[fullest] -= 1
        while receiver != fullest:
            giver, topic = origins[receiver]
            partitions = self._held[giver].pop(topic)
            # What was handed out last has not been anybody's yet.
            self._held[receiver].setdefault(topic, []).append(partitions.pop())
            if partitions:
                # To the end: next time another topic comes first, so that the member keeps some of every topic.
                self._held[giver][topic] = partitions
            receiver = giver
