"""What compaction may remove: the simulator's own model of it, independent of the node's code."""

import pytest

from quire.protocol.records import Record
from simulator.checks.superseded import KEYS, check_survivors, is_compacted, may_be_superseded
from simulator.ledger import Known, PartitionBook, Setting, TopicBook
from simulator.violation import Violation


def book(count: int) -> PartitionBook:
    """Records 0, 1, 2 and so on; those that are KEYS apart have the same key."""
    topic = TopicBook("t", bytes(16), 1, stays=True)
    topic.settings = {"cleanup.policy": Setting("compact,delete")}
    held = topic.partitions[0]
    for offset in range(count):
        held.send(b"%d" % offset, "plain", offset, idempotent=False)
        held.learn(offset, Known(b"%d" % offset, "acknowledged"), idempotent=False)
    return held


def records(*offsets: int) -> list[Record]:
    return [Record(offset, 0, b"", b"%d" % offset) for offset in offsets]


def test_a_record_may_go_for_a_later_one_with_its_key() -> None:
    held = book(2 * KEYS)
    assert is_compacted(held.topic)
    check_survivors(held, records(*range(KEYS, 2 * KEYS)), 0, 2 * KEYS)


def test_the_last_record_of_a_key_stays() -> None:
    held = book(2 * KEYS)
    for missing in range(KEYS, 2 * KEYS):
        left = [offset for offset in range(2 * KEYS) if offset != missing]
        with pytest.raises(Violation, match="compaction removes a record only for a later one with its key"):
            check_survivors(held, records(*left), 0, 2 * KEYS)


def test_all_but_the_last_record_of_each_key_may_be_gone_and_the_last_too_while_a_write_is_in_doubt() -> None:
    held = book(2 * KEYS)
    assert may_be_superseded(held) == set(range(KEYS))
    held.send(b"unknown", "plain", 2 * KEYS + 1, idempotent=False)
    assert may_be_superseded(held) == {*range(KEYS), KEYS + 1}


def test_records_that_were_deleted_or_not_read_yet_may_be_missing() -> None:
    check_survivors(book(8), records(3, 4), 3, 5)
