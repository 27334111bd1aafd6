"""The `uniform` assignor: every member gets as many partitions as the others, whatever topics they are of.

Members that subscribe to the same topics differ by at most one partition. Where subscriptions differ, no partition
could go from a member to another, directly or through others that pass on one of theirs, and leave the two nearer to
each other: the loads are as even as the subscriptions allow.

1. Members keep what they have, as far as it still exists and they still subscribe to it.
2. Where all subscribe to the same topics, members that have more than their share give up the rest at once.
3. What no member has goes to the subscriber that has least; topics with few subscribers first.
4. Where subscriptions differ, members with more than their share pass the rest on to those with less
   (`load_levelling`).
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
"""With fewer partitions to hand out, looking for the emptiest member each time is faster."""
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
    """What is left free when each member has taken what it had, unless another one has taken it before."""
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
    """With the same topics for all, every share is known from the start, and larger by one for some members."""
    loads = holdings.loads
    share, larger_shares = divmod(sum(loads) + sum(map(len, free.values())), len(loads))
    # The members that have most keep the larger shares, so that the fewest partitions move.
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
