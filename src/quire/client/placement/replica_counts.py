"""Gives each broker as many replicas as the others, with as few moves as possible.

A replica moves from a broker to one that has at least two fewer. If a broker has more replicas than another, one of its
partitions is not on that other one, so without racks and full disks this ends with counts that differ by one at most.
Each move brings two brokers nearer to the mean, so there is no shorter way.
"""

from quire.client.placement.candidates import Candidates
from quire.client.placement.layout import Layout


def even_replica_counts(layout: Layout, candidates: Candidates) -> None:
    while (move := _next_move(layout, candidates)) is not None:
        candidates.move(*move)


def _next_move(layout: Layout, candidates: Candidates) -> tuple[int, int, int] | None:
    """A partition, and the brokers between which it moves."""
    by_count = sorted(layout.targets, key=lambda each: (layout.count(each), layout.bytes[each], each))
    for source in reversed(by_count):
        for target in by_count:
            if layout.count(source) - layout.count(target) < 2:
                break
            # The move should make the bytes even too.
            size_bytes = max(0, layout.bytes[source] - layout.bytes[target]) / 2
            number = candidates.find(source, target, size_bytes)
            if number is not None:
                return number, source, target
    return None
