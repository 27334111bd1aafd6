"""A kind of event that is missing in a batch of seeds is reported."""

from simulator.coverage import ABORT, NEEDED, Coverage
from simulator.ledger import Counts
from simulator.report import RunReport
from simulator.white_box.happenings import SHRINK


def report(happened: dict[str, int], aborted: int = 0) -> RunReport:
    counts = Counts(transactions_aborted=aborted)
    return RunReport(1, "", 0, 0.0, 1, {}, counts, happened)


def test_what_never_happened_is_missing() -> None:
    coverage = Coverage()
    coverage.add(report({SHRINK: 2}))
    assert coverage.missing == [kind for kind in NEEDED if kind != SHRINK]


def test_seeds_are_taken_together() -> None:
    coverage = Coverage()
    for kind in NEEDED:
        coverage.add(report({kind: 1} if kind != ABORT else {}, aborted=int(kind == ABORT)))
    assert not coverage.missing
    assert coverage.range == "each with 0 to 0 acknowledged writes and 0 to 0 faults that took effect"
    assert coverage.seeds == len(NEEDED)
