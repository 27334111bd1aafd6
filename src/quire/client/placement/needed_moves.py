"""Replicas that have to move because their broker may have none, and those that are added or removed."""

from collections.abc import Collection, Iterable

from quire.client.placement.layout import Layout
from quire.client.placement.model import PlacementError


def move_to_targets(
    layout: Layout,
    numbers: Iterable[int],
    replication_factor: int | None = None,
    *,
    may_stay: Collection[int] = (),
) -> None:
    """Afterwards these partitions have replicas on targets only, as many as before or as the factor says.

    Brokers that `may_stay` keep what they have, and get nothing. Raises PlacementError if there are too few brokers, or
    if their disks are too full.
    """
    stays = {*layout.targets, *may_stay}
    for number in sorted(numbers, key=lambda each: (-layout.size(each), each)):
        replicas = layout.replicas[number]
        wanted = replication_factor or len(replicas)
        if wanted > len(stays.intersection(replicas).union(layout.targets)):
            raise PlacementError(_too_few(layout, number, wanted))
        _shrink(layout, number, wanted)
        for broker in [each for each in replicas if each not in stays]:
            layout.move(number, broker, _best(layout, number, instead_of=broker))
        while len(replicas) < wanted:
            layout.add(number, _best(layout, number))


def _shrink(layout: Layout, number: int, wanted: int) -> None:
    """Removes replicas that are not on a target, then those that share a rack; the first replica comes last."""
    replicas = layout.replicas[number]

    def worth(broker: int) -> tuple[bool, bool, bool, int, int, int]:
        shares_its_rack = layout.missing_racks(number, broker) <= layout.missing_racks(number)
        is_first = broker == replicas[0]
        return (
            broker in layout.targets,
            is_first,
            not shares_its_rack,
            -layout.count(broker),
            -layout.bytes[broker],
            broker,
        )

    while len(replicas) > wanted:
        layout.remove(number, min(replicas, key=worth))


def _best(layout: Layout, number: int, *, instead_of: int | None = None) -> int:
    """The broker with the fewest replicas, in a rack that has none yet if there is one."""
    replicas = layout.replicas[number]
    possible = [each for each in layout.targets if each not in replicas and layout.fits(number, each)]
    if not possible:
        raise PlacementError(
            f"{layout.before[number].name} ({layout.size(number):,} bytes) fits on no other broker: "
            "add a broker, or make room on their disks"
        )
    used = {layout.rack(each) for each in replicas if each != instead_of}
    topic = layout.before[number].topic

    def cost(broker: int) -> tuple[bool, int, int, int, int]:
        return (
            layout.rack(broker) in used,
            layout.count(broker),
            layout.of_topic[broker, topic],
            layout.bytes[broker],
            broker,
        )

    return min(possible, key=cost)


def _too_few(layout: Layout, number: int, wanted: int) -> str:
    have = ", ".join(map(str, layout.targets)) or "none"
    return (
        f"{layout.before[number].name} needs {wanted} replicas, and only these brokers may have one: {have}; "
        "name more brokers, or lower the number with --replication-factor"
    )
