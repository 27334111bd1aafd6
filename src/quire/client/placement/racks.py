"""Spreads the replicas of each partition over as many racks as possible."""

from collections.abc import Iterable

from quire.client.placement.layout import Layout


def spread_over_racks(layout: Layout, numbers: Iterable[int]) -> None:
    targets = set(layout.targets)
    for number in numbers:
        while layout.missing_racks(number) and _spread(layout, number, targets):
            pass


def _spread(layout: Layout, number: int, targets: set[int]) -> bool:
    """Moves one replica from a rack that has several to the least loaded broker of a rack that has none."""
    replicas = layout.replicas[number]
    racks = [layout.rack(each) for each in replicas]
    crowded = [each for each, rack in zip(replicas, racks, strict=True) if racks.count(rack) > 1 and each in targets]
    empty = [
        each
        for each in layout.targets
        if layout.rack(each) not in racks and layout.fits(number, each) and layout.within_limits((number, each))
    ]
    if not crowded or not empty:
        return False
    # The replica that came last moves: the first one may lead.
    source = max(crowded, key=lambda each: (each != replicas[0], layout.count(each), each))
    layout.move(number, source, min(empty, key=lambda each: (layout.count(each), layout.bytes[each], each)))
    return True
