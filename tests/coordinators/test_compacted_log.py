"""The compaction that other tests rely on."""

from quire.coordinators.runtime.result import WrittenBy
from tests.coordinators.compacted_log import compacted
from tests.coordinators.sim_shard import LogEntry


def test_only_the_records_that_count_are_kept() -> None:
    def entry(key: bytes, value: bytes | None, producer: int | None = None) -> LogEntry:
        return LogEntry(key, value, None if producer is None else WrittenBy(producer, 0))

    def end(producer: int, committed: bool) -> LogEntry:
        return LogEntry(None, None, WrittenBy(producer, 0), committed)

    old, new = entry(b"k", b"1"), entry(b"k", b"2")
    assert compacted([old, new], 1.0, keep_tombstones=True) == [new]
    aborted = entry(b"k", b"3", 1)
    assert compacted([old, aborted, end(1, False)], 1.0, keep_tombstones=True) == [old, end(1, False)]
    assert compacted([old, aborted, end(1, True)], 1.0, keep_tombstones=True) == [aborted, end(1, True)]
    assert compacted([old, aborted, new], 1.0, keep_tombstones=True) == [old, aborted, new], "the transaction is open"
    gone = entry(b"k", None)
    assert compacted([old, gone], 1.0, keep_tombstones=True) == [gone]
    assert compacted([old, gone], 1.0, keep_tombstones=False) == []
