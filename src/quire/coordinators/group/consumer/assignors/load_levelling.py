"""Makes the loads of members as even as their subscriptions allow, by moving as little as that takes.

Among some members, the share of each is the average. Members with more pass partitions on, directly or through others
that pass on one of theirs, until they have their share, and members with less get theirs. If some cannot pass on their
surplus, then neither they nor all whom they could reach have anything that the others could take: these two sets are
levelled apart from each other, each with its own average. So every set that is left in the end has the average or one
partition more, and between sets nothing could move from a member with more to one with less.

A search looks at each member and each audience at most once, in sets that are the bits of numbers, and moves as many
partitions as it can along the way it has found. A search in vain rules out all that it reached for the next ones.
"""

from quire.coordinators.group.consumer.assignors.assignor import MemberSet, positions
from quire.coordinators.group.consumer.assignors.holdings import Holdings
from quire.coordinators.group.consumer.assignors.turns import Pace, Turns

_WORK_OF_A_SEARCH = 8

_Way = list[tuple[int, int, int]]
"""Who gives to whom of which audience, from the last step back to the first."""


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
        # To those below the share first: the larger shares are for the members that already have them.
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
    """Members with more than `keep` pass the rest on to members with less than `fill_up_to`. Returns those that could
    not, with all whom they could reach."""
    loads = holdings.loads
    # Among members with the same load the first ones keep the larger shares.
    givers = sorted(((loads[member], member) for member in positions(among) if loads[member] > keep), reverse=True)
    takers = sum(1 << member for member in positions(among) if loads[member] < fill_up_to)
    stuck: MemberSet = 0
    for _, giver in givers:
        while takers and loads[giver] > keep and not stuck >> giver & 1:
            way, reached = _search(holdings, giver, among & ~stuck, takers)
            work = _WORK_OF_A_SEARCH + reached.bit_count()
            if way is None:
                stuck |= reached
            else:
                taker = way[0][1]
                most = min(loads[giver] - keep, fill_up_to - loads[taker])
                count = min(most, *(holdings.count(from_, audience) for from_, _, audience in way))
                for from_, to, audience in way:
                    holdings.move(from_, to, audience, count)
                work += count * len(way)
                if loads[taker] == fill_up_to:
                    takers ^= 1 << taker
            if pace.is_turn_over(work):
                yield
    return stuck


def _search(holdings: Holdings, giver: int, among: MemberSet, takers: MemberSet) -> tuple[_Way | None, MemberSet]:
    """A shortest way to one of `takers`, if there is one, and whom the search has reached."""
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
                return _way(origins, giver, taker), among & ~unreached
        for audience in positions(gives):
            reached = holdings.audiences[audience].member_set & unreached
            unreached &= ~reached
            for position in positions(reached):
                origins[position] = member, audience
                queue.append(position)
    return None, among & ~unreached


def _way(origins: dict[int, tuple[int, int]], giver: int, taker: int) -> _Way:
    way: _Way = []
    while taker != giver:
        from_, audience = origins[taker]
        way.append((from_, taker, audience))
        taker = from_
    return way
