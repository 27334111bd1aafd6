"""The ledger of committed offsets with constructed answers: which attempt may be in force, and which must be."""

import pytest

from simulator.ledger import Ledger, TopicBook
from simulator.offset_ledger import NEVER_EARLIER, NO_OFFSET, NOT_LOST, CommitAttempt, OffsetLedger
from simulator.transaction_ledger import TransactionBook
from tests.simulator.expected_violation import expect

ABORTED = "an offset of an open or aborted transaction does not count"


class Run:
    """A group that reads one partition."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.offsets = OffsetLedger(self.ledger)
        self.partition = TopicBook("t", bytes(16), 1, stays=True).partitions[0]

    def attempt(self, offset: int, transaction: TransactionBook | None = None) -> CommitAttempt:
        return self.offsets.attempt("group", self.partition, offset, transaction)

    def commit(self, offset: int, transaction: TransactionBook | None = None) -> CommitAttempt:
        attempt = self.attempt(offset, transaction)
        self.offsets.acknowledged(attempt, copies_left=False)
        return attempt

    def fetch(
        self,
        found: CommitAttempt | None,
        *,
        asked_tick: int | None = None,
        stable: bool = False,
        deposed: bool = False,
    ) -> None:
        tick = self.ledger.ticks.next() if asked_tick is None else asked_tick
        book = self.offsets.book("group", self.partition)
        offset, tag = (NO_OFFSET, "") if found is None else (found.offset, found.tag)
        self.offsets.fetched(book, tick, offset, tag, stable=stable, deposed=deposed)

    def begin(self) -> TransactionBook:
        owner = self.ledger.transactions.id_named("id")
        return self.ledger.transactions.begin(owner.given("producer", (1, 0), owner.asking(self.ledger.ticks.next())))


@pytest.fixture
def run() -> Run:
    return Run()


def test_the_last_acknowledged_commit_is_in_force(run: Run) -> None:
    run.fetch(None)
    first, second = run.commit(5), run.commit(3)
    run.fetch(second)
    with expect(NEVER_EARLIER):
        run.fetch(first)
    with expect(NOT_LOST):
        run.fetch(None)


def test_an_answer_may_be_older_than_what_became_known_after_its_request(run: Run) -> None:
    first = run.commit(5)
    asked_tick = run.ledger.ticks.next()
    run.commit(6)
    run.fetch(first, asked_tick=asked_tick)


def test_a_deposed_coordinator_may_know_less_and_nothing_else(run: Run) -> None:
    first = run.commit(5)
    run.commit(6)
    run.fetch(first, deposed=True)
    run.fetch(None, deposed=True)
    of_an_open_transaction = run.commit(7, run.begin())
    with expect(ABORTED):
        run.fetch(of_an_open_transaction, deposed=True)


def test_an_attempt_without_an_answer_may_be_carried_out_at_any_time(run: Run) -> None:
    lost = run.attempt(5)
    last = run.commit(6)
    run.fetch(last)
    run.fetch(lost)


def test_a_frame_that_went_out_twice_may_be_carried_out_again(run: Run) -> None:
    twice = run.attempt(5)
    run.offsets.acknowledged(twice, copies_left=True)
    run.commit(6)
    run.fetch(twice)


def test_of_concurrent_commits_either_may_be_the_last(run: Run) -> None:
    first, second = run.attempt(5), run.attempt(6)
    run.offsets.acknowledged(first, copies_left=False)
    run.offsets.acknowledged(second, copies_left=False)
    run.fetch(first)
    run.fetch(second)


def test_a_refused_commit_changes_nothing(run: Run) -> None:
    attempt = run.attempt(5)
    run.offsets.refused(attempt, copies_left=False)
    run.fetch(None)
    with expect("a commit that is refused changes nothing"):
        run.fetch(attempt)


def test_only_committed_offsets_are_fetched(run: Run) -> None:
    with expect("an offset that is fetched was committed"):
        run.fetch(CommitAttempt("somebody else's", 5, 0, 0))


class TestInTransactions:
    def test_an_offset_counts_when_its_transaction_is_committed(self, run: Run) -> None:
        transaction = run.begin()
        before, attempt = run.commit(4), run.commit(5, transaction)
        run.fetch(before, stable=True)
        transaction.commit_asked = True
        transaction.committed_tick = run.ledger.ticks.next()
        run.fetch(attempt)
        run.fetch(before)
        with expect(NEVER_EARLIER):
            run.fetch(before, stable=True)

    def test_an_offset_of_an_open_transaction_does_not_count(self, run: Run) -> None:
        attempt = run.commit(5, run.begin())
        with expect(ABORTED):
            run.fetch(attempt)

    def test_a_later_commit_outlasts_the_end_of_the_transaction(self, run: Run) -> None:
        transaction = run.begin()
        attempt, later = run.commit(5, transaction), run.commit(6)
        transaction.commit_asked = True
        transaction.committed_tick = run.ledger.ticks.next()
        run.fetch(later, stable=True)
        with expect(NEVER_EARLIER):
            run.fetch(attempt, stable=True)

    def test_if_the_end_of_a_transaction_is_unknown_its_first_trace_decides_for_the_offset_too(self, run: Run) -> None:
        transaction = run.begin()
        before, attempt = run.commit(4), run.commit(5, transaction)
        transaction.commit_asked = True
        transaction.seen(True, "by its marker")
        run.fetch(before)
        run.offsets.at_rest = True
        run.fetch(attempt)
        with expect(NEVER_EARLIER):
            run.fetch(before)


def test_an_acknowledgement_in_transit_at_a_power_loss_does_not_count(run: Run) -> None:
    run.ledger.transactions.durable = False
    attempt = run.attempt(5)
    run.ledger.power_lost()
    run.offsets.power_lost()
    run.offsets.acknowledged(attempt, copies_left=False)
    run.fetch(None)


def test_after_a_power_loss_commits_from_before_may_be_gone_and_later_ones_may_not(run: Run) -> None:
    first, second = run.commit(5), run.commit(6)
    run.offsets.power_lost()
    run.fetch(None)
    run.fetch(first)
    third = run.commit(7)
    run.fetch(third)
    with expect(NEVER_EARLIER):
        run.fetch(second)
