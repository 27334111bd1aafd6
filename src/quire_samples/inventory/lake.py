"""Reads the archive of an inventory for the check: each row of the lake is one event. Needs the `[spark]` extra."""

from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.spark import INSTALL_SPARK
from quire_samples.inventory.check import Archived

COLUMNS = ["item", "sequence", "change", "level"]
MISSING_NAMED = 5


def read_lake(path: str, *, may_be_missing: bool = False) -> dict[str, Archived]:
    """The sums for every item of a Delta table; empty if the table does not exist and `may_be_missing`."""
    try:
        import pyarrow.compute as compute
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError
    except ImportError as error:
        raise Failure(f"reading the lake needs {error.name}; install it with: {INSTALL_SPARK}.") from error
    try:
        events = DeltaTable(path).to_pyarrow_table(columns=COLUMNS)
    except TableNotFoundError as error:
        if may_be_missing:
            return {}
        raise Failure(f"there is no Delta table at {path}; give its path with --lake.", EXIT_NOT_FOUND) from error
    sums = events.group_by("item").aggregate(
        [("change", "sum"), ("sequence", "count"), ("sequence", "count_distinct"), ("sequence", "max")]
    )
    items = {
        row["item"]: Archived(
            total=row["change_sum"],
            events=row["sequence_count"],
            distinct=row["sequence_count_distinct"],
            last_sequence=row["sequence_max"],
            last_level=-1,
        )
        for row in sums.to_pylist()
    }
    last = events.join(sums.select(["item", "sequence_max"]), keys="item")
    last = last.filter(compute.equal(last["sequence"], last["sequence_max"]))
    for item, level in zip(last["item"].to_pylist(), last["level"].to_pylist(), strict=True):
        items[item].last_level = level
    for item, archived in items.items():
        if archived.distinct != archived.last_sequence:
            there = set(events.filter(compute.equal(events["item"], item))["sequence"].to_pylist())
            missing = (number for number in range(1, archived.last_sequence) if number not in there)
            archived.missing = [number for number, _ in zip(missing, range(MISSING_NAMED), strict=False)]
    return items
