"""Searches that no index shortens: in pieces, in a job, during appends, and with the same results."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.protocol.errors import ErrorCode
from quire.protocol.records.batch import walk_batches
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.time_lookup import time_search
from quire.storage.time_lookup.searcher import Searcher
from quire.storage.time_lookup.time_scan_native import find_time
from quire.storage.time_lookup.time_search import LongSearchError, TimeSearch, TimestampedOffset, search_now
from simulator.disk import DiskCall, SimDisk
from tests.storage.batch_walks import interpreted_module
from tests.storage.batches import FOLDER, NOW_MS, append, batch, open_log
from tests.storage.cleaning.compaction import COMPACTED, compact, keyed
from tests.storage.manual_jobs import ManualJobs
from tests.storage.time_lookup.test_timestamp_lookup import append_timestamps

FUTURE = 10_000
MANY = 3000
"""Batches of about 90 bytes each: far more than one step searches."""


@pytest.fixture
def log(disk: SimDisk) -> Log:
    """The record with a timestamp far in the future is deleted, and the time index has no higher timestamp."""
    log = open_log(disk, LogConfig(index_interval_bytes=500))
    append_timestamps(log, FUTURE)
    for number in range(MANY):
        append_timestamps(log, 100 + number % 50)
    log.delete_records_before(1)
    return log


@pytest.fixture
def little_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes every search of more than a few batches a long one."""
    monkeypatch.setattr("quire.storage.time_lookup.timestamp_lookup.AT_ONCE_BYTES", 100)
    monkeypatch.setattr(time_search, "_FIRST_CHUNK", 70)
    monkeypatch.setattr(time_search, "_CHUNK", 170)
    yield


def begun(log: Log, timestamp: int) -> TimeSearch:
    with pytest.raises(LongSearchError) as raised:
        log.find_timestamp(timestamp)
    return raised.value.search


def test_a_search_reads_only_a_little_at_once(log: Log, disk: SimDisk) -> None:
    reads: list[DiskCall] = []

    def note(operation: DiskCall) -> bool:
        if operation.kind == "read":
            reads.append(operation)
        return False

    disk.fail_when(note)
    begun(log, 150)
    assert 1 < len(reads) < 5
    assert log.find_timestamp(149) == (149, 50, 3), "this is near, and found at once"


def test_the_result_of_a_job_is_used(log: Log) -> None:
    search = begun(log, 150)
    assert search.run()
    assert log.find_timestamp(150, search) is None
    assert search_now(log.find_max_timestamp) == (149, 50, 3)


def test_a_search_finds_what_is_far_behind(log: Log) -> None:
    append_timestamps(log, 5000, leader_epoch=4)
    append_timestamps(log, 6000, leader_epoch=4)
    search = begun(log, 150)
    search.run()
    assert search.found == log.find_timestamp(150, search) == (5000, MANY + 1, 4)
    assert search_now(log.find_max_timestamp) == (6000, MANY + 2, 4)


def test_other_segments_are_searched_when_the_first_search_finds_nothing(log: Log) -> None:
    log.roll(0)
    append_timestamps(log, 200)
    append_timestamps(log, FUTURE + 1)
    assert search_now(lambda searched: log.find_timestamp(150, searched)) == (200, MANY + 1, 3)
    assert search_now(log.find_max_timestamp) == (FUTURE + 1, MANY + 2, 3)


def test_records_appended_during_the_search_came_after_the_request_and_are_not_waited_for(log: Log) -> None:
    search = begun(log, 150)
    append_timestamps(log, 5000)
    search.run()
    assert log.find_timestamp(150, search) is None


def test_a_record_found_but_deleted_since_is_not_returned(log: Log) -> None:
    append_timestamps(log, 5000)
    append_timestamps(log, 5001)
    search = begun(log, 150)
    search.run()
    log.delete_records_before(MANY + 2)
    assert search_now(lambda searched: log.find_timestamp(150, searched or search)) == (5001, MANY + 2, 3)


@pytest.mark.usefixtures("little_at_once")
def test_segments_that_were_compacted_during_the_search_are_searched_again(disk: SimDisk) -> None:
    log = open_log(disk, COMPACTED._replace(segment_bytes=10_000))
    append(log, keyed((b"future", b""), timestamp=FUTURE))
    for number in range(30):
        append(log, keyed((b"%d" % (number % 3), b""), timestamp=number))
    log.roll(NOW_MS)
    append(log, keyed((b"last", b""), timestamp=5000))
    log.roll(NOW_MS)
    log.delete_records_before(1)
    log.flush()
    search = begun(log, 5000)
    search.run()
    compact(disk, log, 1)
    assert len(log.segments) == 2
    assert search_now(lambda searched: log.find_timestamp(5000, searched or search)) == (5000, 31, 0)


@settings(max_examples=80, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(-1, 60), min_size=1, max_size=4), min_size=1, max_size=40),
    asked=st.integers(0, 61),
    deleted=st.integers(0, 40),
)
def test_in_pieces_any_log_answers_as_a_search_through_all_records_would(
    batches: list[list[int]], asked: int, deleted: int
) -> None:
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr("quire.storage.time_lookup.timestamp_lookup.AT_ONCE_BYTES", 100)
        patching.setattr(time_search, "_FIRST_CHUNK", 70)
        patching.setattr(time_search, "_CHUNK", 170)
        log = open_log(SimDisk(), LogConfig(segment_bytes=700, index_interval_bytes=150))
        for timestamps in batches:
            append_timestamps(log, *timestamps)
        records = [
            TimestampedOffset(timestamp, offset, 3)
            for offset, timestamp in enumerate(timestamp for timestamps in batches for timestamp in timestamps)
        ]
        start = min(deleted, len(records))
        log.delete_records_before(start)
        live = records[start:]
        expected = next((record for record in live if record.timestamp >= asked), None)
        assert search_now(lambda searched: log.find_timestamp(asked, searched)) == expected
        timed = [record for record in live if record.timestamp >= 0]
        assert search_now(log.find_max_timestamp) == max(timed, key=lambda record: record.timestamp, default=None)


@given(
    batches=st.lists(st.tuples(st.integers(-1, 9), st.integers(1, 3)), max_size=12),
    asked=st.integers(0, 9),
    from_offset=st.integers(0, 20),
    cut=st.integers(0, 200),
    highest=st.booleans(),
)
def test_compiled_and_interpreted_the_headers_say_the_same(
    batches: list[tuple[int, int]], asked: int, from_offset: int, cut: int, highest: bool
) -> None:
    content, offset = b"", 0
    for timestamp, count in batches:
        content += batch(*[b"v"] * count, timestamp=timestamp, base_offset=offset)
        offset += count
    content = content[: len(content) - cut] if cut < len(content) else content
    asked_of = (memoryview(content), from_offset, asked, highest)
    assert find_time(*asked_of) == interpreted_module("time_lookup/time_scan_native").find_time(*asked_of)


class Asked:
    """A search in a job, and its outcome."""

    def __init__(self, search: TimeSearch) -> None:
        self.jobs = ManualJobs()
        self.failures: list[Exception] = []
        self.told: list[object] = []
        Searcher(self.jobs, self.failures.append).search(search, self.told.append, self.told.append)

    def run(self) -> object:
        self.jobs.run_all()
        (answer,) = self.told
        return answer


def test_a_search_whose_segment_is_closed_during_it_starts_again(log: Log) -> None:
    search = begun(log, 150)
    asked = Asked(search)
    log.close_files()
    assert asked.run() is None
    assert asked.failures == []


def test_damage_is_reported_to_the_caller_and_logged(log: Log, disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
    search = begun(log, 150)
    size = walk_batches(disk.read_file(f"{FOLDER}/{0:020d}.log"))[-1].size
    disk.open(f"{FOLDER}/{0:020d}.log").pwritev([b"\x00"], (MANY - 100) * size + 16)
    answer = Asked(search).run()
    assert isinstance(answer, DamagedBatchError)
    assert "not serving a damaged batch" in caplog.text


def test_both_callers_get_the_error_of_a_failing_disk(log: Log, disk: SimDisk) -> None:
    search = begun(log, 150)
    asked = Asked(search)
    disk.fail_when(lambda operation: operation.kind == "read")
    answer = asked.run()
    assert getattr(answer, "code", None) is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(asked.failures) == 1
