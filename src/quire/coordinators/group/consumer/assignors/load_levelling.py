"""Load levelling: makes the loads of members as even as their subscriptions allow, and moves as little as possible.

The share of a member is the average of its set. Members above their share pass partitions to members below, directly or
through members that pass on one of their own. If some members cannot pass on their surplus, no partition can go from
them, or from the members that they can reach, to the others. Then these two sets are levelled separately, each with its
own average. In the end each member of a set has the average of the set or one more, and no partition could move from a
member with more to one with less.

A search visits each member and each audience at most once. Sets are the bits of integers. It moves as many partitions
as possible along the path that it finds. If it finds none, later searches skip all members that it has reached.
"""

from quire.coordinators.group.consumer.assignors.assignor import MemberSet, positions
from quire.coordinators.group.consumer.assignors.holdings import Holdings
from quire.coordinators.group.consumer.assignors.turns import Pace, Turns

_WORK_OF_A_SEARCH = 8

_Path = list[tuple[int, int, int]]
"""(giver, taker, audience) of each step, from the last one to the first."""


def level(holdings: Holdings, pace: Pace) -> Turns[None]:
    loads = holdings.loads
    apart: list[MemberSet] = [(1 << len(loads)) - 1]
    while apart:
        among = apart.pop()
        members = list(positions(among))
        if not members:
            continue
        share, larger_shares = divmod(sum(loads[member] for member in members), len(members))
        most = share + (larger_shares > 0)
        # First to members below the share, so that members that have the larger shares keep them.
        yield from _pass_on(holdings, among, most, share, pace)
        stuck = yield from _pass_on(holdings, among, most, most, pace)
        if stuck:
            apart += [stuck, among & ~stuck]
            continue
        stuck = yield from _pass_on(holdings, among, share, share, pace)
        rest = among & ~stuck
        if stuck and any(loads[member] < share for member in positions(rest)):
            apart.append(rest)


def _pass_on(holdings: Holdings, among: MemberSet, keep: int, fill_up_to: int, pace: Pace) -> Turns[MemberSet]:
    """Members with more than `keep` pass the rest on to members with less than `fill_up_to`.

    Returns the members that could not, and those that they can reach.
    """
    loads = holdings.loads
    # Of members with the same load the first ones keep the larger shares.
    givers = sorted(((loads[member], member) for member in positions(among) if loads[member] > keep), reverse=True)
    takers = sum(1 << member for member in positions(among) if loads[member] < fill_up_to)
    stuck: MemberSet = 0
    for _, giver in givers:
        while takers and loads[giver] > keep and not stuck >> giver & 1:
            path, reached = _search(holdings, giver, among & ~stuck, takers)
            work = _WORK_OF_A_SEARCH + reached.bit_count()
            if path is None:
                stuck |= reached
            else:
                taker = path[0][1]
                most = min(loads[giver] - keep, fill_up_to - loads[taker])
                count = min(most, *(holdings.count(from_, audience) for from_, _, audience in path))
                for from_, to, audience in path:
                    holdings.move(from_, to, audience, count)
                work += count * len(path)
                if loads[taker] == fill_up_to:
                    takers ^= 1 << taker
            if pace.is_turn_over(work):
                yield
    return stuck


def _search(holdings: Holdings, giver: int, among: MemberSet, takers: MemberSet) -> tuple[_Path | None, MemberSet]:
    """A shortest path to one of `takers`, if there is one, and the members that the search has reached."""
    unreached = among & ~(1 << giver)
    unasked = -1
    origins: dict[int, tuple[int, int]] = {}
    queue = [giver]
    for member in queue:
        gives = holdings.gives[member] & unasked
        unasked &= ~gives
        for audience in positions(gives):
            found = holdings.audiences[audience].member_set & takers & unreached
            if found:
                taker = (found & -found).bit_length() - 1
                origins[taker] = member, audience
                return _path(origins, giver, taker), among & ~unreached
        for audience in positions(gives):
            reached = holdings.audiences[audience].member_set & unreached
            unreached &= ~reached
            for position in positions(reached):
                origins[position] = member, audience
                queue.append(position)
    return None, among & ~unreached


def _path(origins: dict[int, tuple[int, int]], giver: int, taker: int) -> _Path:
    path: _Path = []
    while taker != giver:
        from_, audience = origins[taker]
        path.append((from_, taker, audience))
        taker = from_
    return path
