"""Who holds a partition, as far as losses are concerned: when may a power loss take records that clients know?

A machine that loses power loses, of each of its logs, at most what was not flushed. A partition loses records only if
no machine is left that has them all: `in_sync` are the replicas that have everything that was acknowledged with
acks=all (its ISR and ELR), and `hurt` are those of them that have lost power since. With one replica, its machine
decides alone; losses of other machines do not matter.
"""

from collections.abc import Iterable


class Replicas:
    __slots__ = ("hurt", "in_sync")

    def __init__(self) -> None:
        self.in_sync: tuple[str, ...] = ()
        """Empty while it is unknown; then every machine may hold it alone."""
        self.hurt: set[str] = set()

    def are(self, in_sync: Iterable[str]) -> None:
        """The controller has decided. A replica that is new among them has caught up with one that has everything."""
        names = tuple(in_sync)
        if names and names != self.in_sync:
            self.hurt.difference_update(set(names) - set(self.in_sync))
            self.in_sync = names

    def power_lost(self, machine: str) -> bool:
        """A machine has lost power: returns whether the partition may have lost what was not flushed."""
        if not self.in_sync:
            return True
        if machine not in self.in_sync:
            return False
        self.hurt.add(machine)
        return self.hurt.issuperset(self.in_sync)

    def settled(self, machine: str) -> None:
        """What the machine has left after a loss is the truth now."""
        self.hurt.discard(machine)
