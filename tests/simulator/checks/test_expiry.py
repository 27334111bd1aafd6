"""What retention may delete: the simulator's own model of it, independent of the node's code."""

import pytest

from simulator.checks.checker import Checker
from simulator.checks.expiry import NEVER, gone_before
from simulator.checks.superseded import KEYS
from simulator.ledger import RECORD_OVERHEAD_BYTES, Floor, Known, Ledger, PartitionBook, Setting, TopicBook
from simulator.violation import Violation

NOW_MS = 1_000_000
NOBODY_KNOWS = Floor(0, 0)


def book(*ages_ms: int, **settings: str) -> PartitionBook:
    """A partition with a record of 100 bytes for each age, acknowledged and not read yet."""
    topic = TopicBook("t", bytes(16), 1, stays=True)
    topic.settings = {key.replace("_", "."): Setting(value) for key, value in settings.items()}
    held = topic.partitions[0]
    for offset, age_ms in enumerate(ages_ms):
        value = b"%0100d" % offset
        held.send(value, "plain", offset, idempotent=False, timestamp=NOW_MS - age_ms)
        held.learn(offset, Known(value, "acknowledged"), idempotent=False)
    return held


def test_without_retention_only_what_was_asked_for_may_be_gone() -> None:
    held = book(9000, 9000, 9000, retention_ms="604800000", retention_bytes="-1")
    assert gone_before(held, NOW_MS) == 0
    held.deletion_asked = 2
    assert gone_before(held, NOW_MS) == 2


def test_records_may_go_when_they_are_older_than_retention_ms_and_all_before_them_are() -> None:
    assert gone_before(book(9000, 5001, 5000, 9000, retention_ms="5000"), NOW_MS) == 2
    assert gone_before(book(9000, 9000, retention_ms="5000"), NOW_MS) == NEVER


def test_the_nodes_own_timestamp_counts_where_it_assigns_them_and_is_unknown_until_read() -> None:
    held = book(9000, 10, 10, retention_ms="5000", message_timestamp_type="LogAppendTime")
    assert gone_before(held, NOW_MS) == NEVER
    held.known[1].timestamp = NOW_MS - 4000
    assert gone_before(held, NOW_MS) == 1


def test_records_may_go_by_size_while_the_rest_may_still_fill_the_limit() -> None:
    limit = 2 * (100 + RECORD_OVERHEAD_BYTES)
    assert gone_before(book(0, 0, 0, 0, retention_bytes=str(limit), retention_ms="-1"), NOW_MS) == 2
    held = book(0, 0, 0, 0, retention_bytes=str(limit), retention_ms="-1")
    held.send(bytes(100), "plain", 4, idempotent=False, timestamp=NOW_MS)
    assert gone_before(held, NOW_MS) == 3, "a record of unknown outcome may be in the log too"


def test_a_record_that_compaction_may_have_taken_keeps_nothing() -> None:
    ages = [9000] * KEYS + [10] + [9000] * KEYS
    assert gone_before(book(*ages, retention_ms="5000"), NOW_MS) == KEYS
    assert gone_before(book(*ages, retention_ms="5000", cleanup_policy="compact,delete"), NOW_MS) == NEVER


def test_a_setting_that_was_asked_for_once_may_have_been_in_force() -> None:
    held = book(9000, 10, retention_ms="604800000")
    held.topic.settings["retention.ms"].tried.append("5000")
    assert gone_before(held, NOW_MS) == 1


def test_a_log_that_starts_where_it_may_is_fine_and_one_offset_later_is_not() -> None:
    checker = Checker(Ledger(), lambda: NOW_MS)
    held = book(9000, 9000, 10, 9000, retention_ms="5000")
    checker.bounds.listed_start(held, 0, NOBODY_KNOWS, 2)
    checker.bounds.out_of_range(held, 0, held.floor(), 1)
    with pytest.raises(Violation, match="no record is deleted unasked or before it expires"):
        checker.bounds.listed_start(held, 0, NOBODY_KNOWS, 3)
    with pytest.raises(Violation, match="the high watermark never goes back"):
        checker.bounds.out_of_range(held, 0, held.floor(), 2)


def test_a_start_that_was_seen_holds_even_after_a_power_loss() -> None:
    ledger = Ledger()
    checker = Checker(ledger, lambda: NOW_MS)
    held = book(9000, 9000, 10, retention_ms="5000")
    checker.bounds.listed_start(held, 0, NOBODY_KNOWS, 2)
    ledger.power_lost()
    with pytest.raises(Violation, match="the log start offset never goes back"):
        checker.bounds.listed_start(held, 1, held.floor(afresh=True), 0)


def test_a_time_is_looked_up_among_what_must_be_there() -> None:
    checker = Checker(Ledger(), lambda: NOW_MS)
    held = book(9000, 10, 10, retention_ms="5000")
    for offset in range(3):
        held.known[offset].timestamp = held.written[held.known[offset].value].timestamp
    checker.bounds.listed_time(held, 0, held.floor(), NOW_MS - 9000, 1)
    with pytest.raises(Violation, match="a time is found"):
        checker.bounds.listed_time(held, 0, held.floor(), NOW_MS - 9000, 2)
