"""Checks the promises of a node against each answer when it arrives (docs/architecture.md has the list).

Every method takes an answer and what was known when the request was sent (`Floor`), raises `Violation` if the two
cannot both be true, and writes new knowledge into the ledger. A partition has one leader, so an answer must agree with
everything that any client had learned of it before the request was sent.

What holds after which fault:

- A process kill loses nothing: acknowledged records stay, and records that were read can be read again.
- A power loss may lose records, but only from the end of a log, and none that the log had flushed. Their replacements
  have another leader epoch. An answer that was in transit at the power loss says nothing about the log found
  afterwards, except for what was flushed (`losses`).
- Records disappear from the start of a log if a client deleted them, or if retention may have (`expiry`). A log never
  starts earlier than it was seen to start (`log_bounds`).
- While flush.messages is 1, a power loss loses nothing that was acknowledged; if it has been 1 from the beginning,
  nothing that any client has seen.
- Compaction removes a record only if there is a later one with the same key (`superseded`).
- Acknowledged metadata and allocated producer ids survive both faults.
- The promises of transactions are in `transaction_checker`.
"""

from collections.abc import Callable, Sequence

from simulator.checks.fetch_checker import FetchChecker
from simulator.checks.known_records import KnownRecords
from simulator.checks.log_bounds import LogBounds
from simulator.checks.losses import LossChecker
from simulator.checks.transaction_checker import TransactionChecker
from simulator.checks.whole_log import WholeLogChecker
from simulator.ledger import Floor, Known, Ledger, PartitionBook
from simulator.violation import Violation


class Checker:
    def __init__(self, ledger: Ledger, latest_ms: Callable[[], int] = lambda: 0) -> None:
        """`latest_ms` is the latest time that a node's clock has shown so far."""
        self._ledger = ledger
        self._known = KnownRecords(ledger)
        self.bounds = LogBounds(ledger, latest_ms)
        self.transactions = TransactionChecker(ledger)
        self.fetches = FetchChecker(ledger, self.bounds, self._known, self.transactions)
        self.whole_logs = WholeLogChecker(ledger, self.transactions, latest_ms)
        self.losses = LossChecker(ledger, latest_ms)

    def acknowledged(
        self,
        book: PartitionBook,
        era: int,
        floor: Floor,
        base_offset: int,
        values: Sequence[bytes],
        *,
        first_try: bool,
        flushed: bool = False,
        by_all: bool = True,
    ) -> None:
        """A producer got an acknowledgement: its records start at `base_offset`, and are synced if `flushed`.

        Unless it waited for all replicas (`by_all`), they may be lost with their leader.
        """
        self._ledger.counts.checks += 1
        self._ledger.counts.write_acknowledged(book.acknowledges(values))
        late = self.bounds.is_outdated(book, era, floor)
        if not by_all and book.topic.replication_factor > 1:
            if not late and floor.epoch is not None:
                self._known.learn_tentatively(book, floor.epoch, base_offset, values)
            return
        if first_try and not late and base_offset < floor.end_offset and book.leadership.is_current(floor.epoch):
            raise Violation(
                "an offset is given once",
                f"{book} gave {base_offset} to a new batch, but ended at {floor.end_offset} before it was sent",
            )
        flushed = flushed and not book.topic.given_up
        for offset, value in enumerate(values, base_offset):
            if flushed or not late or offset < book.surely_kept(era):
                self._known.learn(book, offset, Known(value, "acknowledged"), floor.epoch)
        if flushed:
            book.promised = max(book.promised, base_offset + len(values))

    def producer_id(self, producer_id: int, owner: str) -> None:
        self._ledger.counts.checks += 1
        before = self._ledger.producer_ids.setdefault(producer_id, owner)
        if before != owner:
            raise Violation("a producer id is given once", f"{producer_id} went to {before} and to {owner}")
