"""When a snapshot of the metadata is written, and that none is forgotten."""

from collections.abc import Callable, Iterable
from typing import cast

import pytest

from quire.raft.control_state import ControlHistory
from quire.raft.log_store import LogStore
from quire.raft.log_summary import LogPosition
from quire.raft.settings import MetadataLogSettings
from quire.raft.snapshot_taker import SnapshotContent, SnapshotTaker
from quire.seams import Buffer
from simulator.clock import SimClock

INTERVAL_MS = 60_000
ENOUGH_BYTES = 1_000


class Store:
    """A write that lasts until the test ends it."""

    path = "/meta"

    def __init__(self) -> None:
        self.history = ControlHistory()
        self.begun: list[int] = []
        """The end of each snapshot."""
        self._done: Callable[[], None] | None = None

    def write_snapshot(
        self,
        position: LogPosition,
        batches: Iterable[Buffer],
        done: Callable[[], None],
        failed: Callable[[Exception], None],
        now_ms: int,
    ) -> None:
        assert self._done is None, "two at a time"
        self.begun.append(position.offset)
        self._done = done

    def finish(self) -> None:
        done, self._done = self._done, None
        assert done is not None
        done()

    def clean(self, now_ms: int) -> LogPosition | None:
        return None


class Log:
    """The committed state, and its snapshots."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.store = Store()
        self.end_offset = 0
        self.in_transaction = False
        self.taker = SnapshotTaker(
            cast(LogStore, self.store),
            self.clock,
            MetadataLogSettings(bytes_between_snapshots=ENOUGH_BYTES, snapshot_interval_ms=INTERVAL_MS),
            content=self._content,
            trimmed=lambda _start: None,
            failed=_fail,
        )

    def _content(self) -> SnapshotContent | None:
        return None if self.in_transaction else SnapshotContent(self.end_offset - 1, 1, 1, [])

    def commit(self, size_bytes: int = 1) -> None:
        self.end_offset += 1
        self.taker.committed(size_bytes)
        self.taker.take_if_due()

    def wait(self, duration_ms: float = INTERVAL_MS) -> None:
        self.clock.run_for(duration_ms)


def _fail(error: Exception) -> None:
    raise error


@pytest.fixture
def log() -> Log:
    return Log()


def test_one_is_written_an_interval_after_the_first_change(log: Log) -> None:
    log.commit()
    log.wait(INTERVAL_MS - 1)
    log.commit()
    assert log.store.begun == []
    log.wait(1)
    assert log.store.begun == [2]


def test_one_that_is_due_while_another_is_written_follows_it(log: Log) -> None:
    log.commit(ENOUGH_BYTES)
    log.commit()
    log.wait()
    assert log.store.begun == [1]
    log.store.finish()
    assert log.store.begun == [1, 2]


def test_one_that_has_enough_bytes_while_another_is_written_follows_it(log: Log) -> None:
    log.commit(ENOUGH_BYTES)
    log.commit(ENOUGH_BYTES)
    log.store.finish()
    assert log.store.begun == [1, 2]


def test_one_that_is_due_in_a_metadata_transaction_is_written_after_it(log: Log) -> None:
    log.commit()
    log.in_transaction = True
    log.wait()
    log.commit()
    assert log.store.begun == []
    log.in_transaction = False
    log.commit()
    assert log.store.begun == [3]


def test_the_next_one_waits_for_a_change_and_for_its_own_interval(log: Log) -> None:
    log.commit()
    log.wait()
    log.store.finish()
    log.wait(10 * INTERVAL_MS)
    assert log.store.begun == [1]
    log.commit()
    log.wait(INTERVAL_MS - 1)
    assert log.store.begun == [1]
    log.wait(1)
    assert log.store.begun == [1, 2]
