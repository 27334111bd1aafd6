"""Whether a batch of cluster seeds tested what it is for: every kind of event must have happened in some seed."""

from simulator.white_box.happenings import COORDINATOR_MOVE, ELR_ELECTION, FENCING, SHRINK, SNAPSHOT, TRUNCATION
from simulator.world import RunReport

ABORT = "abort"
NEEDED = (TRUNCATION, FENCING, SHRINK, ELR_ELECTION, ABORT, COORDINATOR_MOVE, SNAPSHOT)
FEWEST_SEEDS = 20
"""A smaller batch need not have everything."""


class Coverage:
    def __init__(self) -> None:
        self.seeds = 0
        self.counts: dict[str, int] = {}

    def add(self, report: RunReport) -> None:
        self.seeds += 1
        happened = report.happened | {ABORT: report.counts.transactions_aborted}
        for kind, count in happened.items():
            self.counts[kind] = self.counts.get(kind, 0) + count

    @property
    def missing(self) -> list[str]:
        """What never happened."""
        return [kind for kind in NEEDED if not self.counts.get(kind)]
