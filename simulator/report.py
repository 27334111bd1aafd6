"""What one run was like."""

from dataclasses import dataclass, field

from simulator.ledger import Counts


@dataclass(slots=True)
class RunReport:
    seed: int
    digest: str
    events: int
    virtual_ms: float
    lives: int
    faults: dict[str, int]
    """Those that took effect."""
    counts: Counts
    happened: dict[str, int] = field(default_factory=dict)
    """Events within a cluster, such as elections and truncations."""
    announced: int = 0
    """How many faults were announced."""
    attacked_ms: float = 0.0
    """How long there were faults, in virtual time."""
    lacks: str | None = None
    """What happened too little, although every promise held."""
    violation: str | None = None
    story: list[str] = field(default_factory=list)
    """What led up to the violation."""

    @property
    def failure(self) -> str | None:
        """Why the run does not count as a success."""
        if self.violation is not None:
            return self.violation
        return f"too little happened: {self.lacks}" if self.lacks is not None else None
