"""Finding records by time in various logs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from quire.protocol.records.batch import walk_batches
from quire.protocol.records.builder import build_batch
from quire.protocol.records.compression import Compression
from quire.protocol.records.record import Record
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from simulator.disk import SimDisk
from tests.storage.batches import NOW_MS, append, batch, open_log


def append_timestamps(log: Log, *timestamps: int, leader_epoch: int = 3, log_append_time: bool = False) -> None:
    data = build_batch(
        [Record(0, timestamp, None, bytes(20)) for timestamp in timestamps],
        compression=Compression.GZIP,
        timestamp_type=1 if log_append_time else 0,
    )
    log.append(data, walk_batches(data), leader_epoch, NOW_MS)


def test_the_first_record_in_offset_order_is_found_not_the_first_in_time(disk: SimDisk) -> None:
    log = open_log(disk)
    append_timestamps(log, 100, 500, 300)
    append_timestamps(log, 200, 700, leader_epoch=4)
    assert log.find_timestamp(0) == (100, 0, 3)
    assert log.find_timestamp(101) == (500, 1, 3)
    assert log.find_timestamp(501) == (700, 4, 4)
    assert log.find_timestamp(701) is None
    assert log.find_max_timestamp() == (700, 4, 4)


def test_with_log_append_time_a_batch_has_one_time(disk: SimDisk) -> None:
    log = open_log(disk)
    append_timestamps(log, 100, 500, log_append_time=True)
    assert log.find_timestamp(300) == (500, 0, 3)


def test_the_first_of_equally_high_timestamps_counts(disk: SimDisk) -> None:
    log = open_log(disk, LogConfig(segment_bytes=200))
    for timestamps in ([5], [9], [9], [1]):
        append_timestamps(log, *timestamps)
    assert len(log.segments) > 1
    assert log.find_max_timestamp() == (9, 1, 3)


def test_deleted_records_are_not_found(disk: SimDisk) -> None:
    log = open_log(disk)
    append_timestamps(log, 900)
    append_timestamps(log, 100, 200, 300)
    log.delete_records_before(2)
    assert log.find_timestamp(0) == (200, 2, 3)
    assert log.find_timestamp(301) is None
    assert log.find_max_timestamp() == (300, 3, 3)


def test_without_records_or_without_timestamps_there_is_nothing_to_find(disk: SimDisk) -> None:
    log = open_log(disk)
    assert log.find_timestamp(0) is None
    assert log.find_max_timestamp() is None
    append(log, batch(timestamp=-1))
    assert log.find_timestamp(0) is None
    assert log.find_max_timestamp() is None


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), min_size=1, max_size=40),
    asked=st.integers(0, 61),
    deleted=st.integers(0, 5),
    reopen=st.booleans(),
)
def test_any_log_answers_as_a_search_through_all_records_would(
    batches: list[list[int]], asked: int, deleted: int, reopen: bool
) -> None:
    disk = SimDisk()
    log = open_log(disk, LogConfig(segment_bytes=500, index_interval_bytes=150))
    for timestamps in batches:
        append_timestamps(log, *timestamps)
    records = list(enumerate(timestamp for timestamps in batches for timestamp in timestamps))
    start = min(deleted, len(records) - 1)
    log.delete_records_before(start)
    if reopen:
        log.close()
        log = open_log(disk, LogConfig(segment_bytes=500, index_interval_bytes=150), clean=True, log_start_offset=start)
    live = records[start:]
    expected = next(((timestamp, offset, 3) for offset, timestamp in live if timestamp >= asked), None)
    assert log.find_timestamp(asked) == expected
