"""Looks for a seed that shows a mutant: the same seeds, plans and checks as for the real code.

A seed shows a mutant only if the real code keeps every promise with it. So the real code runs too, with each seed that
seems to show one.
"""

import gc
from collections.abc import Iterable
from typing import NamedTuple

from simulator.main import COMMAND, Kind
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


class RealCode:
    """What becomes of seeds without any mutant."""

    def __init__(self) -> None:
        self._violations: dict[tuple[Kind, int], str | None] = {}

    def holds(self, kind: Kind, seed: int) -> bool:
        if (kind, seed) not in self._violations:
            self._violations[kind, seed] = _violation(kind, seed)
        return self._violations[kind, seed] is None

    @property
    def broken(self) -> list[str]:
        """The seeds that broke a promise, with the commands that repeat them."""
        return [
            f"{COMMAND} --seed {seed}{kind.options}: {violation}"
            for (kind, seed), violation in self._violations.items()
            if violation is not None
        ]


def hunt(
    mutant: Mutant,
    seeds: Iterable[int] = range(MOST_SEEDS),
    real_code: RealCode | None = None,
) -> Caught | None:
    """None if no seed shows it. `real_code` remembers seeds from one mutant to the next."""
    kind = QUORUMS if mutant.quorum else CLUSTERS
    real_code = real_code or RealCode()
    for count, seed in enumerate(seeds, 1):
        with applied(mutant):
            violation = _violation(kind, seed)
        if violation is not None and real_code.holds(kind, seed):
            return Caught(seed, count, violation)
    return None


def _violation(kind: Kind, seed: int) -> str | None:
    gc.collect()
    return World(seed, kind.plan(seed)).run().violation
