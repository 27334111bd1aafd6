"""The promises of transactions, checked against what readers see and what is in the logs.

- A read_committed reader never sees a record of an open or aborted transaction: its producer must at least have
  requested the commit.
- A transaction ends in the same way everywhere. If its producer does not know the outcome, the first evidence (a
  visible record, a marker, an offset in force) decides, and later evidence must agree.
- In a log, the transactions of a producer follow each other, each with its records in send order and before the marker
  that commits it.
- Once everything has ended (`settled`), all or none of the records of each transaction are visible.
- Every request of a fenced producer is refused, and no producer epoch is given twice.
"""

from collections.abc import Iterable, Mapping, Sequence

from quire.protocol.records import Record
from simulator.checks.read_committed import Marker, marker_of
from simulator.ledger import Ledger, PartitionBook
from simulator.transaction_ledger import ATOMIC, Session, TransactionBook
from simulator.violation import Violation

NOT_SHOWN = "read_committed shows no record of an open or aborted transaction"
ALL_SHOWN = "read_committed shows every record of a committed transaction, in order"
FENCED = "a producer that was replaced is refused"


class TransactionChecker:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._book = ledger.transactions

    # --- Producers

    def let_in(self, session: Session, was_superseded: bool, what: str) -> None:
        """A request of a session was executed; `was_superseded` is the state when it was sent."""
        self._ledger.counts.checks += 1
        if was_superseded:
            raise Violation(FENCED, f"{session}, {session.identity}: {what}")

    # --- Readers

    def shown(self, book: PartitionBook, record: Record) -> None:
        """A read_committed reader got this record."""
        transaction = self._book.of_value.get(bytes(record.value or b""))
        if transaction is None or transaction.suspended:
            return
        self._ledger.counts.checks += 1
        if transaction.is_committed is False:
            raise Violation(NOT_SHOWN, f"{book} at {record.offset}: {transaction}, {_why(transaction)}")
        transaction.seen(True, f"{book} shows its record at {record.offset}")

    def whole_log(self, book: PartitionBook, records: Iterable[Record]) -> None:
        """Checks everything in a log from its first offset on, committed or not."""
        self._ledger.counts.checks += 1
        open_ones: dict[int, _Part] = {}
        for record in records:
            value = bytes(record.value or b"")
            marker = marker_of(value)
            if marker is not None:
                part = open_ones.pop(marker.producer_id, None)
                if part is not None:
                    _ended(book, part, marker, record.offset)
            elif (transaction := self._book.of_value.get(value)) is not None and not transaction.suspended:
                part = open_ones.setdefault(transaction.session.producer_id, _Part(transaction))
                if part.transaction is not transaction:
                    raise Violation(
                        "a producer's transactions come one after the other",
                        f"{book} has a record of {transaction} at {record.offset}, and {part.transaction} is open",
                    )
                part.values.append(value)

    def settled(self, shown: Mapping[PartitionBook, Sequence[Record]]) -> None:
        """All transactions have ended, and these are all records that a read_committed reader sees."""
        self._ledger.counts.checks += 1
        found: dict[tuple[TransactionBook, PartitionBook], list[bytes]] = {}
        for book, records in shown.items():
            for record in records:
                value = bytes(record.value or b"")
                transaction = self._book.of_value.get(value)
                if transaction is not None:
                    found.setdefault((transaction, book), []).append(value)
        for transaction in self._book.transactions:
            if not transaction.suspended:
                self._settled(transaction, found)

    def _settled(
        self, transaction: TransactionBook, found: dict[tuple[TransactionBook, PartitionBook], list[bytes]]
    ) -> None:
        for book, values in transaction.values.items():
            there = found.get((transaction, book), [])
            if there and there != values:
                raise Violation(ALL_SHOWN, f"{book} shows {len(there)} of {len(values)} records of {transaction}")
            if there and transaction.is_committed is False:
                raise Violation(NOT_SHOWN, f"{book}: {transaction}, {_why(transaction)}")
            if not there and transaction.is_committed:
                raise Violation(
                    ALL_SHOWN, f"{book} shows nothing of {transaction}, which is committed {transaction.trace_text}"
                )
            transaction.seen(bool(there), f"{book} shows {len(there)} records of it at the end")


class _Part:
    """The records of a transaction in a log before its marker."""

    def __init__(self, transaction: TransactionBook) -> None:
        self.transaction = transaction
        self.values: list[bytes] = []


def _ended(book: PartitionBook, part: _Part, marker: Marker, offset: int) -> None:
    transaction = part.transaction
    transaction.seen(marker.commits, f"by the marker in {book} at {offset}")
    sent = transaction.values[book]
    if marker.commits and part.values != sent:
        raise Violation(
            ATOMIC,
            f"{transaction} has {len(part.values)} of {len(sent)} records in {book} before its marker at {offset}",
        )


def _why(transaction: TransactionBook) -> str:
    return transaction.trace_text or "whose commit was not requested"
