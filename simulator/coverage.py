"""Whether a batch of cluster seeds tested what it is for: every kind of event must have happened in some seed."""

from simulator.report import RunReport
from simulator.white_box.happenings import (
    COORDINATOR_MOVE,
    DISK_MOVE,
    ELR_ELECTION,
    FENCING,
    REASSIGNMENT,
    SHRINK,
    SNAPSHOT,
    TRUNCATION,
)

ABORT = "abort"
NEEDED = (TRUNCATION, FENCING, SHRINK, ELR_ELECTION, ABORT, COORDINATOR_MOVE, SNAPSHOT, REASSIGNMENT, DISK_MOVE)
FEWEST_SEEDS = 20
"""A smaller batch need not have everything."""


class Coverage:
    def __init__(self) -> None:
        self.seeds = 0
        self.counts: dict[str, int] = {}
        self._writes: list[int] = []
        self._faults: list[int] = []

    def add(self, report: RunReport) -> None:
        self.seeds += 1
        self._writes.append(report.counts.writes_acknowledged)
        self._faults.append(sum(report.faults.values()))
        happened = report.happened | {ABORT: report.counts.transactions_aborted}
        for kind, count in happened.items():
            self.counts[kind] = self.counts.get(kind, 0) + count

    @property
    def range(self) -> str:
        """How much the seeds went through, for a person."""
        writes, faults = (f"{min(each)} to {max(each)}" for each in (self._writes, self._faults))
        return f"each with {writes} acknowledged writes and {faults} faults that took effect"

    @property
    def missing(self) -> list[str]:
        """What never happened."""
        return [kind for kind in NEEDED if not self.counts.get(kind)]
