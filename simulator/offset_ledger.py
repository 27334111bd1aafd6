"""The offsets that groups commit, attempt by attempt, and what OffsetFetch may answer.

Every attempt has its own tag, which is committed with it as metadata, so a fetched offset shows which attempt is in
force. Of two attempts the later one must be, if its commit was acknowledged and the other had ended before it was sent.
An attempt whose response was lost may still be executed at any time. An attempt in a transaction counts as soon as that
is committed, at the position where it was sent.

A coordinator that does not know yet that another one has replaced it answers OffsetFetch from what it has, as in Apache
Kafka.

After a power loss every earlier acknowledgement is doubtful, unless the coordinators' logs are flushed at each message.
"""

from dataclasses import dataclass, field

from simulator.ledger import Ledger, PartitionBook
from simulator.transaction_ledger import TransactionBook
from simulator.violation import Violation

NEVER_EARLIER = "an acknowledged offset commit is never replaced by an earlier one"
NOT_LOST = "an acknowledged offset commit is not lost"
NO_OFFSET = -1


@dataclass(slots=True, eq=False)
class CommitAttempt:
    tag: str
    offset: int
    sent_tick: int
    era: int
    transaction: TransactionBook | None = None
    settled_tick: int | None = None
    """When its outcome was known: it has been executed by then, or never will be."""
    acknowledged_tick: int | None = None
    refused: bool = False

    def is_due(self, tick: int, *, stable: bool, at_rest: bool = False) -> bool:
        """Whether it must be in force for a request sent at `tick`, unless a later one is.

        While a transaction's markers are in transit, only a request for `stable` offsets can rely on its end. If its
        producer does not know the end, no request can rely on it before everything is `at_rest`.
        """
        if self.acknowledged_tick is None or self.acknowledged_tick > tick:
            return False
        transaction = self.transaction
        if transaction is None:
            return True
        if at_rest:
            return transaction.is_committed is True and not transaction.suspended
        return stable and transaction.committed_tick is not None and transaction.committed_tick < tick


@dataclass(slots=True)
class OffsetBook:
    """One partition as one group reads it."""

    group: str
    book: PartitionBook
    attempts: dict[str, CommitAttempt] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.group} of {self.book}"


class OffsetLedger:
    """All groups. Offsets found are checked at once; `fetched` raises Violation."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._books: dict[tuple[str, PartitionBook], OffsetBook] = {}
        self._tags = 0
        self.at_rest = False
        """Every transaction has ended."""

    def book(self, group: str, partition: PartitionBook) -> OffsetBook:
        return self._books.setdefault((group, partition), OffsetBook(group, partition))

    def books(self) -> list[OffsetBook]:
        return list(self._books.values())

    # --- Committing

    def attempt(
        self, group: str, partition: PartitionBook, offset: int, transaction: TransactionBook | None = None
    ) -> CommitAttempt:
        self._tags += 1
        attempt = CommitAttempt(
            f"{group}:{self._tags}", offset, self._ledger.ticks.next(), self._ledger.era, transaction
        )
        self.book(group, partition).attempts[attempt.tag] = attempt
        if transaction is not None:
            transaction.commits.append(attempt)
        return attempt

    def acknowledged(self, attempt: CommitAttempt, *, copies_left: bool) -> None:
        """`copies_left`: the frame was sent twice, and the other copy may be executed at any time."""
        tick = self._ledger.ticks.next()
        if self._ledger.transactions.durable or attempt.era == self._ledger.era:
            attempt.acknowledged_tick = tick
        if not copies_left:
            attempt.settled_tick = tick
        self._ledger.counts.offsets_committed += 1

    def refused(self, attempt: CommitAttempt, *, copies_left: bool) -> None:
        if not copies_left:
            attempt.refused = True
            attempt.settled_tick = self._ledger.ticks.next()

    def power_lost(self) -> None:
        """Everything acknowledged may be lost, even if the acknowledgement is still in transit."""
        for book in self._books.values():
            for attempt in book.attempts.values():
                attempt.acknowledged_tick = None

    # --- Fetching

    def fetched(
        self, book: OffsetBook, asked_tick: int, offset: int, tag: str, *, stable: bool, deposed: bool = False
    ) -> None:
        """The answer to a request of `asked_tick`; `stable` if it was for offsets that no open transaction changes.

        A coordinator that was `deposed` may not know the latest commits, but what it answers was committed.
        """
        self._ledger.counts.checks += 1
        attempts = [] if deposed else book.attempts.values()
        due = [each for each in attempts if each.is_due(asked_tick, stable=stable, at_rest=self.at_rest)]
        if offset == NO_OFFSET:
            if due:
                raise Violation(NOT_LOST, f"{book} has none, but {due[-1].offset} ({due[-1].tag}) was acknowledged")
            return
        found = book.attempts.get(tag)
        if found is None or found.offset != offset:
            raise Violation("an offset that is fetched was committed", f"{book} has {offset}, {tag!r}")
        if found.refused:
            raise Violation("a commit that is refused changes nothing", f"{book} has {offset}, {tag!r}")
        if found.transaction is not None:
            if found.transaction.is_committed is False and not found.transaction.suspended:
                raise Violation(
                    "an offset of an open or aborted transaction does not count",
                    f"{book} has {offset}, {tag!r}, of {found.transaction}",
                )
            found.transaction.seen(True, f"its offset is in force for {book}")
        for each in due:
            if found.settled_tick is not None and found.settled_tick < each.sent_tick:
                raise Violation(
                    NEVER_EARLIER,
                    f"{book} has {offset} ({tag}), but {each.offset} ({each.tag}) was acknowledged after that",
                )
