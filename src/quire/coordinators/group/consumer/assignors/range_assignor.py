"""The `range` assignor: each subscriber gets a range of each topic, and the same range of co-partitioned topics.

Topics are co-partitioned if they have the same subscribers and the same number of partitions. The member with partition
3 of one topic then has partition 3 of the others, so that it can join them. The numbers of partitions of a topic differ
by at most one between members. A member keeps its partitions as far as its share allows. So after members have joined
and left, the partitions of a member are not always consecutive.
"""

from collections.abc import Mapping

from quire.coordinators.group.consumer.assignors.assignor import (
    AssignedMember,
    Assignment,
    Audience,
    PartitionCounts,
    audiences,
)
from quire.coordinators.group.consumer.assignors.turns import Pace, Turns, finish

_ANY_FREE = -1
"""Instead of a partition: any partition that no member keeps."""


def assign_ranges(members: Mapping[str, AssignedMember], counts: PartitionCounts) -> dict[str, Assignment]:
    return finish(ranges_in_turns(members, counts))


def ranges_in_turns(members: Mapping[str, AssignedMember], counts: PartitionCounts) -> Turns[dict[str, Assignment]]:
    ids = sorted(members)
    in_order = [members[id_] for id_ in ids]
    assigned: list[dict[bytes, frozenset[int]]] = [{} for _ in ids]
    pace = Pace()
    for audience in (yield from audiences(in_order, counts, pace)):
        for co_partitioned in _by_count(audience.topics, counts):
            held = yield from _held_numbers(audience, in_order, co_partitioned, pace)
            for position, numbers in _ranges(audience.members, held, counts[co_partitioned[0]]).items():
                assigned[position].update(dict.fromkeys(co_partitioned, numbers))
                if pace.is_turn_over(len(numbers) + len(co_partitioned)):
                    yield
    return dict(zip(ids, assigned, strict=True))


def _by_count(topics: list[bytes], counts: PartitionCounts) -> list[list[bytes]]:
    co_partitioned: dict[int, list[bytes]] = {}
    for topic in topics:
        co_partitioned.setdefault(counts[topic], []).append(topic)
    return list(co_partitioned.values())


def _held_numbers(
    audience: Audience, members: list[AssignedMember], co_partitioned: list[bytes], pace: Pace
) -> Turns[dict[int, list[int]]]:
    """The partitions that each member has of these topics. If topics differ, the first one counts."""
    owners: dict[int, int] = {}
    for topic in co_partitioned:
        work = len(audience.members)
        for position in audience.members:
            numbers = members[position].held.get(topic, ())
            work += len(numbers)
            for number in numbers:
                owners.setdefault(number, position)
        if pace.is_turn_over(work):
            yield
    held: dict[int, list[int]] = {position: [] for position in audience.members}
    for number in sorted(owners):
        held[owners[number]].append(number)
    return held


def _ranges(audience: tuple[int, ...], held: dict[int, list[int]], count: int) -> dict[int, frozenset[int]]:
    share, larger_shares = divmod(count, len(audience))
    kept: dict[int, list[int]] = {}
    # The members with most partitions keep the larger shares; the first ones if they have the same number.
    for position in sorted(audience, key=lambda position: (-len(held[position]), position)):
        allowed = share + (larger_shares > 0)
        if not allowed:
            break
        larger_shares -= larger_shares > 0
        kept[position] = [number for number in held[position] if number < count][:allowed]
        kept[position] += [_ANY_FREE] * (allowed - len(kept[position]))
    taken = {number for numbers in kept.values() for number in numbers}
    free = iter([number for number in range(count) if number not in taken])
    return {
        position: frozenset(next(free) if number == _ANY_FREE else number for number in kept[position])
        for position in sorted(kept)
    }
