"""Who holds a partition, as far as losses are concerned: when may a power loss take records that clients know?

A machine that loses power loses, of each of its logs, at most what was not flushed. A partition loses records only if
no machine is left that has them all: `in_sync` are the replicas that have everything that was acknowledged with
acks=all (its ISR and ELR), and `hurt` are machines that have lost power since they had everything. With one replica,
its machine decides alone; losses of other machines do not matter. A replica outside of `in_sync` that is hurt matters
if it is elected anyway.
"""

from collections.abc import Callable, Iterable


class Replicas:
    __slots__ = ("hurt", "in_sync", "isr")

    def __init__(self) -> None:
        self.isr: tuple[str, ...] = ()
        """Those of them that are up and follow, as far as the controller knows."""
        self.in_sync: tuple[str, ...] = ()
        """Empty while it is unknown; then every machine may hold it alone."""
        self.hurt: dict[str, int] = {}
        """With the end of what was on disk."""

    def are(self, in_sync: Iterable[str], has_returned: Callable[[str], bool] = lambda _: True) -> None:
        """The controller has decided. A replica that is new among them has caught up with one that has everything.

        Unless it had caught up before it lost power, and has not returned since: then it may lack the end.
        """
        names = tuple(in_sync)
        if names and names != self.in_sync:
            for name in names:
                if name not in self.in_sync and has_returned(name):
                    self.settled(name)
            self.in_sync = names

    def power_lost(self, machine: str, flushed: int = 0) -> bool:
        """A machine has lost power: returns whether the partition may have lost what was not flushed."""
        if not self.in_sync:
            return True
        self.hurt.setdefault(machine, flushed)
        return machine in self.in_sync and self.are_lost

    @property
    def are_lost(self) -> bool:
        """Whether all that were in sync have lost power."""
        return bool(self.in_sync) and all(name in self.hurt for name in self.in_sync)

    @property
    def kept(self) -> int:
        """What survives if all have lost power: any of them may lead, so no more than each of them has."""
        return min((self.hurt.get(name, 0) for name in self.in_sync), default=0)

    def settled(self, machine: str) -> None:
        """The machine has everything again, or what it has left after a loss is the truth now."""
        self.hurt.pop(machine, None)
