"""The faults of a run: those that were announced, and those of them that took effect.

A fault may have no effect: the node may not reach the write during which it should end, and nothing may be sent across
a partition. So each fault has an `Effect`. The code that causes the fault calls it when the fault first affects
something.
"""

from collections.abc import Callable

Felt = Callable[[], None]
"""Called whenever a fault affects something."""


def unnoticed() -> None:
    """For what is not a fault."""


class Effect:
    """One fault, which counts from the first call on."""

    __slots__ = ("_counts", "_kind", "felt")

    def __init__(self, kind: str, counts: "FaultCounts") -> None:
        self._kind = kind
        self._counts = counts
        self.felt = False

    def __call__(self) -> None:
        if not self.felt:
            self.felt = True
            struck = self._counts.struck
            struck[self._kind] = struck.get(self._kind, 0) + 1


class FaultCounts:
    def __init__(self) -> None:
        self.announced: dict[str, int] = {}
        """Per kind of fault."""
        self.struck: dict[str, int] = {}
        """Those that took effect."""

    def announce(self, kind: str) -> Effect:
        self.announced[kind] = self.announced.get(kind, 0) + 1
        return Effect(kind, self)

    @property
    def total(self) -> int:
        """How many took effect."""
        return sum(self.struck.values())
