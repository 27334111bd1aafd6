"""Looks for a seed that shows a mutant: the same seeds, plans and checks as for the real code."""

import gc
from collections.abc import Callable, Iterable
from typing import NamedTuple

from simulator.main import Kind
from simulator.mutants.mutant import Mutant, applied
from simulator.world import World

CLUSTERS = Kind(clusters=True, scale=0.2)
QUORUMS = Kind(quorums=True, scale=0.4)
MOST_SEEDS = 200


class Caught(NamedTuple):
    seed: int
    seeds: int
    """How many were needed."""
    violation: str


def hunt(
    mutant: Mutant, seeds: Iterable[int] = range(MOST_SEEDS), progress: Callable[[int], None] = lambda _: None
) -> Caught | None:
    """None if no seed shows it."""
    kind = QUORUMS if mutant.quorum else CLUSTERS
    with applied(mutant):
        for count, seed in enumerate(seeds, 1):
            progress(seed)
            gc.collect()
            violation = World(seed, kind.plan(seed)).run().violation
            if violation is not None:
                return Caught(seed, count, violation)
    return None
