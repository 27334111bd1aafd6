"""The `uniform` assignor: all members get the same number of partitions, regardless of their topics.

The loads of members with the same subscriptions differ by at most one. If subscriptions differ, the loads are as even
as the subscriptions allow: no move of partitions, directly or through other members, could make two loads more even.

1. Members keep their partitions, if these still exist and the members still subscribe to the topic.
2. If all members have the same subscriptions, members above their share give up the rest.
3. A free partition goes to the subscriber with the lowest load; topics with few subscribers first.
4. If subscriptions differ, members above their share pass the rest on to members below (`load_levelling`).
"""

from collections.abc import Mapping
from heapq import heapify, heapreplace
from itertools import islice

from quire.coordinators.group.consumer.assignors.assignor import (
    AssignedMember,
    Assignment,
    Audience,
    PartitionCounts,
    audiences,
)
from quire.coordinators.group.consumer.assignors.holdings import Holdings, Partition
from quire.coordinators.group.consumer.assignors.load_levelling import level
from quire.coordinators.group.consumer.assignors.turns import Pace, Turns, finish

_WORTH_A_HEAP = 8
"""For fewer partitions, a linear search for the lowest load is faster than a heap."""
_HANDED_OUT_TOGETHER = 4_000


def assign_uniformly(members: Mapping[str, AssignedMember], counts: PartitionCounts) -> dict[str, Assignment]:
    return finish(uniform_in_turns(members, counts))


def uniform_in_turns(members: Mapping[str, AssignedMember], counts: PartitionCounts) -> Turns[dict[str, Assignment]]:
    ids = sorted(members)
    in_order = [members[id_] for id_ in ids]
    pace = Pace()
    holdings = Holdings((yield from audiences(in_order, counts, pace)), len(ids))
    free = yield from _keep(holdings, in_order, counts, pace)
    if len(holdings.audiences) == 1 and len(holdings.audiences[0].members) == len(ids):
        yield from _give_up_surplus(holdings, free, pace)
    for index, audience in enumerate(holdings.audiences):
        in_turn = ((topic, number) for topic in audience.topics for number in sorted(free[topic]))
        while handed_out := list(islice(in_turn, _HANDED_OUT_TOGETHER)):
            _hand_out(holdings, index, audience, handed_out)
            if pace.is_turn_over(len(handed_out) + len(audience.members)):
                yield
    yield from level(holdings, pace)
    assigned: dict[str, Assignment] = {}
    for position, id_ in enumerate(ids):
        assigned[id_] = holdings.assignment(position)
        if pace.is_turn_over(holdings.loads[position]):
            yield
    return assigned


def _keep(
    holdings: Holdings, members: list[AssignedMember], counts: PartitionCounts, pace: Pace
) -> Turns[dict[bytes, set[int]]]:
    """Gives each member the partitions that it had and that are still free. Returns the free ones."""
    free = {topic: set(range(counts[topic])) for audience in holdings.audiences for topic in audience.topics}
    audience_of = {topic: index for index, audience in enumerate(holdings.audiences) for topic in audience.topics}
    for position, member in enumerate(members):
        for topic, numbers in member.held.items():
            if topic in free and topic in member.topics:
                kept = sorted(free[topic] & numbers)
                free[topic].difference_update(kept)
                holdings.keep(position, audience_of[topic], topic, kept)
        if pace.is_turn_over(holdings.loads[position]):
            yield
    return free


def _give_up_surplus(holdings: Holdings, free: dict[bytes, set[int]], pace: Pace) -> Turns[None]:
    """With the same subscriptions, every share is known from the start, and some are larger by one."""
    loads = holdings.loads
    share, larger_shares = divmod(sum(loads) + sum(map(len, free.values())), len(loads))
    # The members with most partitions keep the larger shares, so that the fewest partitions move.
    for member in sorted(range(len(loads)), key=lambda member: (-loads[member], member)):
        allowed = share + (larger_shares > 0)
        if loads[member] > share:
            larger_shares -= larger_shares > 0
            surplus = loads[member] - allowed
            for topic, number in holdings.take(member, 0, surplus):
                free[topic].add(number)
            if pace.is_turn_over(surplus):
                yield


def _hand_out(holdings: Holdings, index: int, audience: Audience, free: list[Partition]) -> None:
    loads = holdings.loads
    if len(free) < _WORTH_A_HEAP:
        for partition in free:
            holdings.add(min(audience.members, key=loads.__getitem__), index, partition)
        return
    by_load = [(loads[position], position) for position in audience.members]
    heapify(by_load)
    for partition in free:
        load, emptiest = by_load[0]
        holdings.add(emptiest, index, partition)
        heapreplace(by_load, (load + 1, emptiest))
