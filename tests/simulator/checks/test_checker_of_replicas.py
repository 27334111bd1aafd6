"""What the checker expects of a partition with several replicas: by leader epoch, by acks, and after a loss."""

import pytest

from quire.protocol.messages.fetch import PartitionData
from quire.protocol.records import Record, build_batch
from simulator.checks.checker import Checker
from simulator.checks.losses import FLUSHED_SURVIVES, HELD, SURVIVES
from simulator.ledger import Floor, Ledger, TopicBook
from tests.simulator.expected_violation import expect

A, B = "node-1", "node-2"


class Run:
    """A partition with two replicas, led by the first in epoch 1, and records a to e."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.checker = Checker(self.ledger)
        topic = TopicBook("t", bytes(16), 1, stays=True, replication_factor=2)
        self.ledger.topics[topic.topic_id] = topic
        self.book = topic.partitions[0]
        for number, value in enumerate((b"a", b"b", b"c", b"d", b"e")):
            self.book.send(value, "plain", number, idempotent=False)
        self.elect(A, 1)

    def elect(self, node: str, epoch: int) -> None:
        self.book.leadership.believes(node, epoch, node)

    def acknowledge(self, node: str, offset: int, *values: bytes, by_all: bool = True) -> None:
        floor = self.book.floor(node)
        self.checker.acknowledged(self.book, self.ledger.era, floor, offset, values, first_try=False, by_all=by_all)

    def fetch(
        self, floor: Floor, *values: bytes, at: int = 0, epoch: int = 1, high_watermark: int | None = None
    ) -> bool:
        """Whether the answer counted."""
        content = b""
        if values:
            content = bytes(
                build_batch([Record(0, 1000, None, value) for value in values], base_offset=at, leader_epoch=epoch)
            )
        end = at + len(values) if high_watermark is None else high_watermark
        answer = PartitionData(partition_index=0, high_watermark=end, log_start_offset=0, records=content)
        return self.checker.fetches.check(self.book, self.ledger.era, floor, at, answer) is not None

    def lose(self, epoch: int, kept: int, left: int) -> None:
        """Records from `kept` on may be lost; the leader of this epoch has them up to `left`."""
        self.ledger.era += 1
        self.book.may_be_lost(self.ledger.era, kept)
        self.book.leadership.settled, self.book.leadership.cut_at = epoch, left
        self.checker.losses.settle(self.book, 0, left, kept)


@pytest.fixture
def run() -> Run:
    return Run()


def test_what_all_have_stays_with_the_next_leader(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b")
    run.elect(B, 2)
    with expect("an offset keeps its record"):
        run.fetch(run.book.floor(B), b"c", at=1, epoch=2)


def test_what_a_leader_has_acknowledged_alone_may_be_lost_with_it(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b", by_all=False)
    run.elect(B, 2)
    assert run.fetch(run.book.floor(B), b"c", epoch=2)
    run.checker.losses.check_tentative(run.book)


def test_while_it_leads_it_holds_what_it_has_acknowledged_alone(run: Run) -> None:
    run.acknowledge(A, 0, b"a", by_all=False)
    with expect("an offset is not used twice in one leader epoch"):
        run.fetch(run.book.floor(A), b"b")


def test_at_the_end_it_must_have_what_it_has_acknowledged_alone(run: Run) -> None:
    run.acknowledge(A, 0, b"a", by_all=False)
    with expect(HELD):
        run.checker.losses.check_tentative(run.book)
    run.fetch(run.book.floor(A), b"a")
    run.checker.losses.check_tentative(run.book)


def test_an_elected_leader_may_learn_of_the_high_watermark_later_but_tells_no_earlier_end(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b")
    run.elect(B, 2)
    assert run.fetch(run.book.floor(B), high_watermark=1)
    with expect("the high watermark never goes back for a reader"):
        run.checker.bounds.listed_end(run.book, run.ledger.era, run.book.floor(B), 1)


def test_in_one_epoch_the_high_watermark_never_goes_back(run: Run) -> None:
    run.fetch(run.book.floor(A), b"a", b"b")
    with expect("the high watermark never goes back for a reader"):
        run.fetch(run.book.floor(A), b"a")


def test_a_deposed_leader_may_answer_with_less_but_with_nothing_else(run: Run) -> None:
    run.elect(B, 2)
    run.fetch(run.book.floor(B), b"a", b"b")
    assert run.fetch(run.book.floor(A), b"a")
    run.checker.bounds.listed_end(run.book, run.ledger.era, run.book.floor(A), 1)
    run.checker.bounds.out_of_range(run.book, run.ledger.era, run.book.floor(A), 2)
    with expect("an offset keeps its record"):
        run.fetch(run.book.floor(A), b"c")


def test_only_what_may_be_lost_is_lost(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b", b"c")
    with expect(SURVIVES):
        run.lose(2, kept=2, left=1)


def test_what_was_flushed_everywhere_is_not_lost(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b", b"c")
    run.book.promised = 2
    with expect(FLUSHED_SURVIVES):
        run.lose(2, kept=0, left=1)


def test_after_a_loss_the_new_leader_is_right(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b", b"c")
    run.lose(2, kept=1, left=1)
    run.elect(B, 2)
    assert run.fetch(run.book.floor(B), b"d", b"e", at=1, epoch=2)
    assert run.ledger.counts.records_lost == 2


def test_after_a_loss_leaders_from_before_say_nothing(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b", b"c")
    before = run.book.floor(A)
    run.lose(2, kept=1, left=1)
    run.elect(B, 2)
    assert not run.fetch(before, b"a", b"b", b"c")
    assert not run.fetch(Floor(0, 0), b"a", b"b", b"c"), "a client that cannot tell who answered sees the old epoch"
    assert run.fetch(Floor(0, 0), b"a")


def test_while_it_is_not_settled_nothing_counts(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b")
    run.book.unsettled = True
    assert not run.fetch(run.book.floor(A), b"c")


def delete_and_elect_the_other(run: Run, *isr: str) -> Floor:
    run.acknowledge(A, 0, b"a", b"b", b"c")
    run.book.replicas.isr = isr
    run.book.deletion_asked = 2
    run.checker.bounds.deleted_records(run.book, run.ledger.era, run.book.floor(A), 2)
    run.elect(B, 2)
    return run.book.floor(B)


def test_what_was_deleted_is_gone_from_a_leader_that_was_in_the_isr(run: Run) -> None:
    floor = delete_and_elect_the_other(run, A, B)
    with expect("the log start offset never goes back"):
        run.fetch(floor, b"a", b"b", b"c")


def test_a_leader_that_was_down_may_still_have_what_was_deleted(run: Run) -> None:
    assert run.fetch(delete_and_elect_the_other(run, A), b"a", b"b", b"c")


def test_what_a_deposed_leader_has_deleted_may_still_be_there(run: Run) -> None:
    run.acknowledge(A, 0, b"a", b"b", b"c")
    run.book.replicas.isr = (B,)
    run.book.deletion_asked = 2
    asked = run.book.floor(A)
    run.elect(B, 2)
    run.checker.bounds.deleted_records(run.book, run.ledger.era, asked, 2)
    assert run.fetch(run.book.floor(B), b"a", b"b", b"c")


def test_a_lost_log_may_start_again(run: Run) -> None:
    delete_and_elect_the_other(run, A, B)
    run.lose(epoch=2, kept=0, left=0)
    assert run.fetch(run.book.floor(B), b"d", epoch=2)
