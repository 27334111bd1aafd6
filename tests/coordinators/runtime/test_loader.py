"""Replaying a log: the last record of each key counts, and transactions and their ends in log order."""

from collections.abc import Callable

import pytest

from quire.coordinators.runtime import loader
from quire.coordinators.runtime.result import WrittenBy
from quire.coordinators.runtime.shard import ShardState
from quire.coordinators.runtime.shard_timers import ShardTimers
from quire.protocol.errors import ApiError
from quire.protocol.records import Record, build_batch
from simulator.clock import SimClock
from tests.coordinators.runtime.notebook import Desk, MemoryLog, Notebook


def test_only_the_last_plain_record_of_each_key_is_decoded() -> None:
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
    assert desk.shard.state is ShardState.ACTIVE
    assert "record type 99" in caplog.text
    assert desk.put("a", 1).value == 1


@pytest.mark.parametrize("key", [None, b"", b"\x00", b"\x00\x00\x00\xff"])
def test_an_invalid_record_prevents_the_shard_from_loading(key: bytes | None) -> None:
    log = MemoryLog()
    log.append(build_batch([Record(0, 0, key, b"\x00\x00")]), 0)
    assert Desk(log).shard.state is ShardState.FAILED


@pytest.mark.parametrize("transaction", [None, WrittenBy(7, 0)])
def test_a_read_may_end_at_any_byte_of_a_batch(transaction: WrittenBy | None) -> None:
    desk = Desk()
    for number in range(8):
        desk.put(f"number {number}", number, transaction)
    if transaction is not None:
        desk.shard.end_transaction(7, 0, committed=True, coordinator_epoch=0)
    desk.log.largest_read = len(desk.log.batches)
    for size in range(1, 3 * len(desk.log.batches[0])):
        desk.log.largest_read_bytes = size
        again = Desk(desk.log)
        assert again.shard.state is ShardState.ACTIVE, f"with reads of {size} bytes"
        assert again.notebook.numbers == desk.notebook.numbers


def test_a_batch_that_does_not_end_keeps_the_shard_from_loading() -> None:
    desk = Desk()
    desk.put("a", 1)
    desk.log.batches[0] = desk.log.batches[0][:-1]
    assert Desk(desk.log).shard.state is ShardState.FAILED


def test_others_get_their_turn_however_transactions_and_plain_records_alternate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loader, "REPLAYED_AT_ONCE", 4)
    desk = Desk()
    desk.log.largest_read = 1_000
    for number in range(30):
        desk.put(f"plain {number}", number)
    for number in range(30):
        desk.put(f"in a transaction {number}", number, WrittenBy(7, 0))
    desk.shard.end_transaction(7, 0, committed=True, coordinator_epoch=0)
    desk.put("last", 1)
    turns = TurnsOfALoader(desk.log)
    turns.load()
    assert turns.notebook.numbers == desk.notebook.numbers
    assert sum(turns.replayed) == 61
    assert max(turns.replayed) <= 4


class TurningClock(SimClock):
    def __init__(self, turn: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._turn = turn

    def call_soon(self, callback: Callable[[], None]) -> None:
        super().call_soon(lambda: self._turn(callback))


class TurnsOfALoader:
    """How many records a loader replays in one turn of the event loop."""

    def __init__(self, log: MemoryLog) -> None:
        self.clock = TurningClock(self._turn)
        self.notebook = Notebook(ShardTimers(self.clock, lambda _operation: None))
        self.replayed: list[int] = []
        self._ended_at: list[int] = []
        self._loader = loader.Loader("notes-0", log, self.notebook, self.clock, self._ended_at.append, self._failed)

    def load(self) -> None:
        self._turn(self._loader.start)
        self.clock.run_until(lambda: bool(self._ended_at))

    def _turn(self, action: Callable[[], None]) -> None:
        before = self.notebook.replayed
        action()
        self.replayed.append(self.notebook.replayed - before)

    def _failed(self, error: ApiError) -> None:
        raise error
