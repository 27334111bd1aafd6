"""Checks a log that was read from its start to its end.

No record is there more often than it was sent, and those of an idempotent producer are in the order in which they were
sent. In a compacted log the last record of each key is there (`superseded`).
"""

from collections.abc import Callable, Sequence

from quire.protocol.records import Record
from simulator.checks.expiry import gone_before
from simulator.checks.known_records import as_text
from simulator.checks.read_committed import marker_of
from simulator.checks.superseded import check_survivors, is_compacted
from simulator.checks.transaction_checker import TransactionChecker
from simulator.ledger import Ledger, PartitionBook
from simulator.violation import Violation


class WholeLogChecker:
    def __init__(self, ledger: Ledger, transactions: TransactionChecker, latest_ms: Callable[[], int]) -> None:
        self._ledger = ledger
        self._transactions = transactions
        self._latest_ms = latest_ms

    def check(self, book: PartitionBook, records: Sequence[Record]) -> None:
        """Checks everything in a log: no record more often than it was sent, idempotent ones in send order."""
        self._ledger.counts.checks += 1
        compacted = is_compacted(book.topic)
        copies: dict[bytes, int] = {}
        last_numbers: dict[str, int] = {}
        for record in records:
            value = bytes(record.value or b"")
            if marker_of(value) is not None:
                continue
            written = book.written[value]
            copies[value] = copies.get(value, 0) + 1
            if copies[value] > (1 if written.idempotent else written.copies):
                raise Violation(
                    "a record is in the log as often as it was sent",
                    f"{book} has {as_text(value)}, sent {written.copies} times, {copies[value]} times",
                )
            if written.idempotent:
                expected = last_numbers.get(written.session, written.number - 1) + 1
                if written.number < expected or (written.number > expected and not compacted):
                    raise Violation(
                        "an idempotent producer's records are in send order, without a gap",
                        f"{book} has record {written.number} of {written.session} at {record.offset}, "
                        f"where {expected} is next",
                    )
                last_numbers[written.session] = written.number
        if book.topic.transactional:
            self._transactions.whole_log(book, records)

    def check_compacted(self, book: PartitionBook, records: Sequence[Record], end_offset: int) -> None:
        """Checks a compacted log up to `end_offset`, read while no client wrote; also after a power loss."""
        if is_compacted(book.topic):
            self._ledger.counts.checks += 1
            check_survivors(book, records, gone_before(book, self._latest_ms()), end_offset)
