"""Checks what is left of a log after power losses, and makes that what the ledger knows.

A power loss may take records from the end of a log, but none that were flushed, and none that a client has seen while
flush.messages was 1. In a cluster it may take none unless all replicas that were in sync lost power.
"""

from collections.abc import Callable

from simulator.checks.expiry import gone_before
from simulator.checks.known_records import as_text
from simulator.checks.superseded import is_compacted
from simulator.ledger import Ledger, PartitionBook
from simulator.violation import Violation

SURVIVES = "a record with acks=all survives unless all that were in sync lost power"
FLUSHED_SURVIVES = "with flush.messages=1 a power loss loses nothing that a client has seen"
HELD = "what a leader acknowledged alone is there while it leads"


class LossChecker:
    def __init__(self, ledger: Ledger, latest_ms: Callable[[], int]) -> None:
        self._ledger = ledger
        self._latest_ms = latest_ms

    def found_after_power_loss(self, book: PartitionBook, start_offset: int, end_offset: int) -> int:
        """The log was read from start to end before any client could write to it again: the ledger adopts this state.

        What is left agreed with the ledger while it was read, and had no gaps: it is a prefix of what was written.
        Returns how many records were lost.
        """
        if end_offset < book.flushed:
            raise Violation(
                "what was flushed survives a power loss",
                f"{book} ends at {end_offset}, but was on disk up to {book.flushed}",
            )
        if end_offset < book.promised:
            raise Violation(
                FLUSHED_SURVIVES,
                f"{book} ends at {end_offset}, but was promised up to {book.promised}",
            )
        book.looked_at = book.era
        lost = book.cut(start_offset, end_offset)
        self._ledger.counts.records_lost += lost
        return lost

    def settle(self, book: PartitionBook, start_offset: int, end_offset: int, kept: int) -> int:
        """In a cluster: the first leader after a loss has what is known up to `end_offset`, which is the truth now.

        Nothing below `kept` can be lost. Returns how many records are lost.
        """
        if end_offset < min(kept, book.end_offset):
            raise Violation(SURVIVES, f"{book} has kept {end_offset} of {book.end_offset}, but {kept} cannot be lost")
        if end_offset < book.promised:
            raise Violation(FLUSHED_SURVIVES, f"{book} ends at {end_offset}, but was promised up to {book.promised}")
        lost = book.cut(start_offset, end_offset)
        self._ledger.counts.records_lost += lost
        return lost

    def check_tentative(self, book: PartitionBook) -> None:
        """What a leader acknowledged alone (acks=1) must be there if it still leads in the same epoch."""
        first_kept = gone_before(book, self._latest_ms())
        for (epoch, offset), value in book.tentative.items():
            if epoch != book.leadership.newest or offset < first_kept or is_compacted(book.topic):
                continue
            known = book.known.get(offset)
            if known is None or known.value != value:
                seen = "nothing" if known is None else as_text(known.value)
                raise Violation(HELD, f"{book} has {seen} at {offset}, where {as_text(value)} was acknowledged")
