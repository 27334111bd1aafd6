"""How much a seed must go through: a run in which little happens proves little, although every promise holds."""

from typing import NamedTuple


class Least(NamedTuple):
    """While there are faults. A run lasts longer until it has that much."""

    seconds: float
    """Of virtual time."""
    writes: int
    """Batches that were acknowledged."""
    faults: int
    """Those that took effect."""

    def lacks(self, seconds: float, writes: int, faults: int) -> str | None:
        """What there was too little of, for a person."""
        seen = (
            (seconds, self.seconds, "seconds with faults"),
            (writes, self.writes, "acknowledged writes"),
            (faults, self.faults, "faults that took effect"),
        )
        short = [f"{had:.0f} {what} instead of {needed:.0f}" for had, needed, what in seen if had < needed]
        return ", ".join(short) or None
