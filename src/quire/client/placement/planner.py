"""The plans: what should become of the replicas of some partitions, with as little copying as that needs."""

from collections.abc import Collection, Sequence

from quire.client.placement.candidates import Candidates
from quire.client.placement.disk_use import even_disk_use
from quire.client.placement.layout import Layout
from quire.client.placement.leaderships import even_leaderships
from quire.client.placement.model import NO_LIMITS, Change, Limits, Node, Placement, PlacementError
from quire.client.placement.needed_moves import move_to_targets
from quire.client.placement.racks import spread_over_racks
from quire.client.placement.replica_counts import even_replica_counts


def spread(
    nodes: Sequence[Node],
    partitions: Sequence[Placement],
    targets: Collection[int],
    replication_factor: int | None = None,
) -> list[Change]:
    """The partitions are on the targets only, evenly; with another replication factor if one is given."""
    _check_known(nodes, targets)
    layout = Layout(nodes, partitions, targets)
    everything = range(len(partitions))
    move_to_targets(layout, everything, replication_factor)
    _balance(layout)
    return layout.changes()


def drain(nodes: Sequence[Node], partitions: Sequence[Placement], drained: Collection[int]) -> list[Change]:
    """Nothing is left on the drained brokers. Only what was there moves; `nodes` are the brokers that are up."""
    targets = [each.broker_id for each in nodes if each.broker_id not in drained]
    if not targets:
        raise PlacementError("no broker would be left: start another one first")
    layout = Layout(nodes, partitions, targets)
    moving = [number for number, each in enumerate(partitions) if not set(drained).isdisjoint(each.replicas)]
    move_to_targets(layout, moving, may_stay=_elsewhere(partitions, {*targets, *drained}))
    even_leaderships(layout, moving)
    return layout.changes()


def refactor(nodes: Sequence[Node], partitions: Sequence[Placement], replication_factor: int) -> list[Change]:
    """Each partition has this many replicas. What is there stays, as far as possible."""
    layout = Layout(nodes, partitions, [each.broker_id for each in nodes])
    changing = [number for number, each in enumerate(partitions) if len(each.replicas) != replication_factor]
    move_to_targets(layout, changing, replication_factor, may_stay=_elsewhere(partitions, layout.targets))
    even_leaderships(layout, changing)
    return layout.changes()


def balance(nodes: Sequence[Node], partitions: Sequence[Placement], limits: Limits = NO_LIMITS) -> list[Change]:
    """Replicas, bytes and leaderships are even on the brokers that are up, as far as the limits allow.

    Replicas on brokers that are not among `nodes` stay: these may return.
    """
    layout = Layout(nodes, partitions, [each.broker_id for each in nodes], limits)
    _balance(layout)
    return layout.changes()


def _elsewhere(partitions: Sequence[Placement], known: Collection[int]) -> set[int]:
    """Brokers that have replicas and are down: they may return, so their replicas stay where they are."""
    return {broker for each in partitions for broker in each.replicas}.difference(known)


def _balance(layout: Layout) -> None:
    everything = range(len(layout.before))
    candidates = Candidates(layout)
    spread_over_racks(layout, everything)
    even_replica_counts(layout, candidates)
    even_disk_use(layout, candidates)
    even_leaderships(layout, everything)


def _check_known(nodes: Sequence[Node], targets: Collection[int]) -> None:
    known = {each.broker_id for each in nodes}
    unknown = sorted(set(targets) - known)
    if unknown:
        raise PlacementError(
            f"broker {unknown[0]} is not up, or does not exist; brokers that are up: "
            f"{', '.join(map(str, sorted(known)))}"
        )
