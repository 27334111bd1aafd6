"""After a loss, the remaining records are compared with the known ones: only those that may be lost may be missing."""

import pytest

from simulator.checks.checker import Checker
from simulator.checks.losses import SURVIVES
from simulator.checks.superseded import POLICY
from simulator.ledger import Known, Ledger, PartitionBook, Setting, TopicBook
from simulator.white_box.settlement import settle
from tests.simulator.expected_violation import expect
from tests.simulator.white_box.logs import disk_with, replica

VALUES = (b"a", b"b", b"c", b"d")


@pytest.fixture
def checker() -> Checker:
    return Checker(Ledger())


@pytest.fixture
def book() -> PartitionBook:
    """Four records are known to be committed."""
    found = TopicBook("t", bytes(16), 1, stays=True, replication_factor=2).partitions[0]
    for offset, value in enumerate(VALUES):
        found.send(value, "plain", offset, idempotent=False)
        found.learn(offset, Known(value, "read"), idempotent=False)
    return found


def test_a_leader_with_everything_has_lost_nothing(checker: Checker, book: PartitionBook) -> None:
    disk = disk_with([(0, 1, [b"a", b"b"]), (2, 1, [b"c", b"d"])])
    assert settle(checker, book, disk, replica(4), kept=0) == 0
    assert book.end_offset == 4


def test_a_shorter_log_has_lost_its_end(checker: Checker, book: PartitionBook) -> None:
    assert settle(checker, book, disk_with([(0, 1, [b"a", b"b"])]), replica(2), kept=1) == 2
    assert (book.end_offset, sorted(book.known)) == (2, [0, 1])


def test_a_log_with_other_records_has_lost_what_was_there(checker: Checker, book: PartitionBook) -> None:
    disk = disk_with([(0, 1, [b"a"]), (1, 2, [b"x", b"y", b"z", b"w"])])
    assert settle(checker, book, disk, replica(5), kept=1) == 3
    assert book.end_offset == 1


def test_what_was_on_disk_everywhere_must_be_there(checker: Checker, book: PartitionBook) -> None:
    with expect(SURVIVES):
        settle(checker, book, disk_with([(0, 1, [b"a"])]), replica(1), kept=2)


def test_compaction_is_no_loss_but_another_record_is(checker: Checker, book: PartitionBook) -> None:
    book.topic.settings[POLICY] = Setting("compact")
    assert settle(checker, book, disk_with([(0, 1, [b"a"]), (3, 1, [b"d"])]), replica(4), kept=4) == 0
    with expect(SURVIVES):
        settle(checker, book, disk_with([(0, 1, [b"x"]), (3, 1, [b"d"])]), replica(4), kept=4)
