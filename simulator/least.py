"""How much a seed must go through: a run in which little happens proves little, although every promise holds."""

from typing import NamedTuple

AHEAD = 1.05
"""Clients rest longer while there have been this many times the writes that are needed by then."""
AHEAD_PACE = 4.0
BEHIND_PACE = 0.4
"""They rest less while there have been too few."""


class Least(NamedTuple):
    """While there are faults. A run lasts longer until it has that much."""

    seconds: float
    """Of virtual time."""
    writes: int
    """Batches that were acknowledged."""
    faults: int
    """Those that took effect."""

    def pace(self, seconds: float, writes: int) -> float:
        """How much longer clients should rest. More writes than needed cost time without testing much more."""
        needed = self.writes * self._share(seconds)
        if writes < needed:
            return BEHIND_PACE
        return AHEAD_PACE if writes > AHEAD * needed else 1.0

    def needs_lull(self, seconds: float, writes: int, faults: int) -> bool:
        """Whether clients have written too little by now because faults leave them no time."""
        share = self._share(seconds)
        return writes < self.writes * share and faults >= self.faults * share

    def _share(self, seconds: float) -> float:
        """How much of everything there should have been by now."""
        return min(1.0, seconds / self.seconds)

    def lacks(self, seconds: float, writes: int, faults: int) -> str | None:
        """What there was too little of, for a person."""
        seen = (
            (seconds, self.seconds, "seconds with faults"),
            (writes, self.writes, "acknowledged writes"),
            (faults, self.faults, "faults that took effect"),
        )
        short = [f"{had:.0f} {what} instead of {needed:.0f}" for had, needed, what in seen if had < needed]
        return ", ".join(short) or None
