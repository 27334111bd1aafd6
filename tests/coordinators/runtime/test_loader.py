"""Replaying a log: the last record of each key counts, transactions and their ends where they stand."""

import pytest

from quire.coordinators.runtime.result import WrittenBy
from quire.coordinators.runtime.shard import State
from quire.protocol.records import Record, build_batch
from tests.coordinators.runtime.notebook import Desk, MemoryLog


def test_of_plain_records_only_the_last_of_each_key_is_decoded() -> None:
    desk = Desk()
    for number in range(50):
        desk.put("a", number)
        desk.put("b", -number)
    again = Desk(desk.log)
    assert again.notebook.numbers == {"a": 49, "b": -49}
    assert again.notebook.replayed == 2


def test_the_last_records_are_replayed_in_the_order_of_the_log() -> None:
    desk = Desk()
    for name in "abca":
        desk.put(name, 1)
    assert list(Desk(desk.log).notebook.numbers) == ["b", "c", "a"]


def test_a_plain_record_before_a_transactions_end_counts_less_than_what_it_commits() -> None:
    desk = Desk()
    desk.put("a", 1, WrittenBy(7, 0))
    desk.put("a", 2)
    desk.shard.end_transaction(7, 0, committed=True, coordinator_epoch=0)
    desk.put("b", 3)
    assert Desk(desk.log).notebook.numbers == desk.notebook.numbers == {"a": 1, "b": 3}


def test_a_record_of_a_type_that_is_newer_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    log.append(build_batch([Record(0, 0, b"\x00\x63new", b"\x00\x00")]), 0)
    desk = Desk(log)
    assert desk.shard.state is State.ACTIVE
    assert "record type 99" in caplog.text
    assert desk.put("a", 1).value == 1


@pytest.mark.parametrize("key", [None, b"", b"\x00", b"\x00\x00\x00\xff"])
def test_a_record_that_makes_no_sense_keeps_the_shard_from_loading(key: bytes | None) -> None:
    log = MemoryLog()
    log.append(build_batch([Record(0, 0, key, b"\x00\x00")]), 0)
    assert Desk(log).shard.state is State.FAILED
