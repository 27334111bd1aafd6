"""The `range` assignor: of each topic every subscriber gets a range, and of topics alike it gets the same one.

Topics are alike when the same members subscribe to them and they have the same number of partitions: partition 3 of one
then goes to whoever has partition 3 of the other, for those who join them. Of each topic members have as many
partitions as the others, or one more. A member that is there already keeps its numbers as far as its share allows, so
after members have come and gone the numbers of one member need not follow each other any more.
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
"""In place of a number: any number that no member keeps."""


def assign_ranges(members: Mapping[str, AssignedMember], counts: PartitionCounts) -> dict[str, Assignment]:
    return finish(ranges_in_turns(members, counts))


def ranges_in_turns(members: Mapping[str, AssignedMember], counts: PartitionCounts) -> Turns[dict[str, Assignment]]:
    ids = sorted(members)
    in_order = [members[id_] for id_ in ids]
    assigned: list[dict[bytes, frozenset[int]]] = [{} for _ in ids]
    pace = Pace()
    for audience in (yield from audiences(in_order, counts, pace)):
        for alike in _by_count(audience.topics, counts):
            held = yield from _held_numbers(audience, in_order, alike, pace)
            for position, numbers in _ranges(audience.members, held, counts[alike[0]]).items():
                assigned[position].update(dict.fromkeys(alike, numbers))
                if pace.is_turn_over(len(numbers) + len(alike)):
                    yield
    return dict(zip(ids, assigned, strict=True))


def _by_count(topics: list[bytes], counts: PartitionCounts) -> list[list[bytes]]:
    alike: dict[int, list[bytes]] = {}
    for topic in topics:
        alike.setdefault(counts[topic], []).append(topic)
    return list(alike.values())


def _held_numbers(
    audience: Audience, members: list[AssignedMember], alike: list[bytes], pace: Pace
) -> Turns[dict[int, list[int]]]:
    """The partition numbers each member has of these topics. Where topics disagree the first one counts."""
    owners: dict[int, int] = {}
    for topic in alike:
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
    # The members that have most keep the larger shares; among equals, and if no member has any, the first ones do.
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
