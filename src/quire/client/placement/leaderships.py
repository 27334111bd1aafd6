"""Gives each broker as many first replicas as the others. This changes the order of replicas only, and copies nothing.

A broker with too many gives a leadership to one with fewer, perhaps over others in between that give one on:
the shortest such path is taken until there is none. Then no order of the replicas is more even (as for optimal
semi-matchings).
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import pairwise

from quire.client.placement.layout import Layout

Edges = dict[int, dict[int, dict[int, None]]]
"""Broker that leads -> broker that has another replica -> the partitions."""


def even_leaderships(layout: Layout, numbers: Iterable[int]) -> None:
    """Only brokers that are targets give and get leaderships."""
    targets = set(layout.targets)
    edges: Edges = defaultdict(lambda: defaultdict(dict))
    for number in numbers:
        _connect(layout, edges, number, targets)
    while any(
        _lower(layout, edges, targets, broker) for broker in sorted(targets, key=lambda each: (-layout.led[each], each))
    ):
        pass


def _connect(layout: Layout, edges: Edges, number: int, targets: set[int]) -> None:
    first, *others = layout.replicas[number]
    if first in targets:
        for each in others:
            if each in targets:
                edges[first][each][number] = None


def _lower(layout: Layout, edges: Edges, targets: set[int], broker: int) -> bool:
    path = _path_down(layout, edges, broker)
    for giver, taker in pairwise(path):
        number = next(iter(edges[giver][taker]))
        for each in layout.replicas[number][1:]:
            edges[giver][each].pop(number, None)
        layout.lead(number, taker)
        _connect(layout, edges, number, targets)
    return bool(path)


def _path_down(layout: Layout, edges: Edges, start: int) -> list[int]:
    """The shortest path to a broker that leads at least two partitions fewer; empty if there is none."""
    came_from: dict[int, int | None] = {start: None}
    waiting = deque([start])
    while waiting:
        broker = waiting.popleft()
        if layout.led[broker] <= layout.led[start] - 2:
            path = [broker]
            while (before := came_from[path[-1]]) is not None:
                path.append(before)
            return path[::-1]
        for taker in sorted(edges[broker], key=lambda each: (layout.led[each], each)):
            if edges[broker][taker] and taker not in came_from:
                came_from[taker] = broker
                waiting.append(taker)
    return []
