"""The checker of transactions with constructed answers: each promise has an answer that breaks it, and one that does
not."""

import pytest

from quire.protocol.records import Record
from simulator.checks.read_committed import Marker
from simulator.checks.transaction_checker import ALL_SHOWN, FENCED, NOT_SHOWN, TransactionChecker
from simulator.ledger import Ledger, PartitionBook, TopicBook
from simulator.transaction_ledger import ATOMIC, Init, Session, TransactionBook
from tests.simulator.expected_violation import expect

COMMIT = Marker(1, 0, commits=True).value
ABORT = Marker(1, 0, commits=False).value


class Run:
    """Two partitions, and a producer whose transactions write a0, a1 and so on to the first, b0, b1 to the second."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.checker = TransactionChecker(self.ledger)
        topic = TopicBook("t", bytes(16), 2, stays=True, transactional=True)
        self.first, self.second = topic.partitions
        self.id = self.ledger.transactions.id_named("id")
        self.session = self.id.given("producer", (1, 0), self.init())

    def init(self, *, settled: bool = True) -> Init:
        init = self.id.asking(self.ledger.ticks.next())
        init.settled_tick = self.ledger.ticks.next() if settled else None
        return init

    def begin(self, first: list[bytes], second: list[bytes]) -> TransactionBook:
        transaction = self.ledger.transactions.begin(self.session)
        self.ledger.transactions.sent(transaction, self.first, first)
        self.ledger.transactions.sent(transaction, self.second, second)
        return transaction

    def asked(self, transaction: TransactionBook) -> TransactionBook:
        transaction.commit_asked = True
        return transaction

    def committed(self, transaction: TransactionBook) -> TransactionBook:
        self.asked(transaction).committed_tick = self.ledger.ticks.next()
        return transaction

    def log(self, book: PartitionBook, *values: bytes) -> None:
        self.checker.whole_log(book, records_of(*values))

    def settle(self, first: list[bytes], second: list[bytes]) -> None:
        self.checker.settled({self.first: records_of(*first), self.second: records_of(*second)})


def records_of(*values: bytes) -> list[Record]:
    return [Record(offset, 0, None, value) for offset, value in enumerate(values)]


@pytest.fixture
def run() -> Run:
    return Run()


class TestReaders:
    def test_a_record_of_a_committed_transaction_is_shown(self, run: Run) -> None:
        run.committed(run.begin([b"a0"], []))
        run.checker.shown(run.first, Record(0, 0, None, b"a0"))

    def test_no_record_is_shown_before_a_commit_is_asked_for(self, run: Run) -> None:
        run.begin([b"a0"], [])
        with expect(NOT_SHOWN):
            run.checker.shown(run.first, Record(0, 0, None, b"a0"))

    def test_no_record_is_shown_of_what_a_marker_has_aborted(self, run: Run) -> None:
        run.asked(run.begin([b"a0"], [b"b0"]))
        run.log(run.second, b"b0", ABORT)
        with expect(NOT_SHOWN):
            run.checker.shown(run.first, Record(0, 0, None, b"a0"))

    def test_a_transaction_that_was_shown_cannot_be_aborted_elsewhere(self, run: Run) -> None:
        run.asked(run.begin([b"a0"], [b"b0"]))
        run.checker.shown(run.first, Record(0, 0, None, b"a0"))
        with expect(ATOMIC):
            run.log(run.second, b"b0", ABORT)


class TestLogs:
    def test_transactions_come_one_after_the_other_with_plain_records_between(self, run: Run) -> None:
        run.committed(run.begin([b"a0", b"a1"], []))
        run.begin([b"a2"], [])
        run.log(run.first, b"plain", b"a0", b"plain", b"a1", COMMIT, b"a2", ABORT, ABORT)

    def test_a_commit_comes_behind_all_records(self, run: Run) -> None:
        run.committed(run.begin([b"a0", b"a1"], []))
        with expect(ATOMIC):
            run.log(run.first, b"a0", COMMIT, b"a1")

    def test_a_transaction_begins_when_the_one_before_has_ended(self, run: Run) -> None:
        run.committed(run.begin([b"a0"], []))
        run.begin([b"a1"], [])
        with expect("a producer's transactions come one after the other"):
            run.log(run.first, b"a0", b"a1", COMMIT)

    def test_only_its_own_session_commits_or_aborts_a_transaction(self, run: Run) -> None:
        run.begin([b"a0"], [])
        with expect(ATOMIC):
            run.log(run.first, b"a0", COMMIT)
        run.committed(run.begin([b"a1"], []))
        with expect(ATOMIC):
            run.log(run.first, b"a1", ABORT)


class TestAtTheEnd:
    def test_every_record_of_a_committed_transaction_is_visible(self, run: Run) -> None:
        run.committed(run.begin([b"a0", b"a1"], [b"b0"]))
        run.settle([b"a0", b"plain", b"a1"], [b"b0"])
        with expect(ALL_SHOWN):
            run.settle([b"a0", b"a1"], [])
        with expect(ALL_SHOWN):
            run.settle([b"a0"], [b"b0"])
        with expect(ALL_SHOWN):
            run.settle([b"a1", b"a0"], [b"b0"])
        with expect(ALL_SHOWN):
            run.settle([b"a0", b"a1", b"a1"], [b"b0"])

    def test_nothing_of_an_aborted_one_is(self, run: Run) -> None:
        run.begin([b"a0"], [b"b0"])
        run.settle([], [])
        with expect(NOT_SHOWN):
            run.settle([], [b"b0"])

    def test_a_transaction_with_an_unknown_end_is_visible_completely_or_not_at_all(self, run: Run) -> None:
        for first, second in (([b"a0"], [b"b0"]), ([], [])):
            another = Run()
            another.asked(another.begin([b"a0"], [b"b0"]))
            another.settle(first, second)
        run.asked(run.begin([b"a0"], [b"b0"]))
        with expect(ALL_SHOWN):
            run.settle([b"a0"], [])

    def test_transactions_that_a_power_loss_may_have_taken_are_not_checked(self, run: Run) -> None:
        run.ledger.transactions.durable = False
        run.committed(run.begin([b"a0"], []))
        run.ledger.power_lost()
        run.settle([], [])
        run.committed(run.begin([b"a1"], []))
        with expect(ALL_SHOWN):
            run.settle([], [])


class TestSessions:
    def given(self, run: Run, producer: str, epoch: int) -> Session:
        return run.id.given(producer, (1, epoch), run.init())

    def test_the_next_session_replaces_the_one_before(self, run: Run) -> None:
        run.checker.let_in(run.session, run.session.superseded, "a batch")
        self.given(run, "another", 1)
        with expect(FENCED):
            run.checker.let_in(run.session, run.session.superseded, "a batch")

    def test_an_answer_that_comes_late_begins_a_session_that_is_over(self, run: Run) -> None:
        self.given(run, "another", 2)
        assert self.given(run, "late", 1).superseded

    def test_a_session_that_moves_on_with_its_transactions_is_not_replaced_by_that(self, run: Run) -> None:
        run.id.moved_on(run.session, (1, 1))
        assert not run.session.superseded
        assert self.given(run, "late", 2).epoch == 2
        assert run.session.superseded

    def test_no_epoch_is_given_out_twice(self, run: Run) -> None:
        with expect("a producer epoch is given once"):
            self.given(run, "another", 0)

    def test_a_session_may_be_fenced_if_another_was_requested(self, run: Run) -> None:
        assert not run.session.may_be_fenced
        run.init(settled=False)
        assert run.session.may_be_fenced

    def test_a_session_may_be_fenced_by_one_requested_before_and_answered_after(self, run: Run) -> None:
        early = run.init(settled=False)
        session = self.given(run, "another", 1)
        early.settled_tick = run.ledger.ticks.next()
        assert session.may_be_fenced

    def test_a_session_answered_before_another_was_requested_does_not_fence_it(self, run: Run) -> None:
        run.init()
        assert not self.given(run, "another", 1).may_be_fenced
