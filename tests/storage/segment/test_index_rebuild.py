"""A look-up of the event loop that finds a wrong index of a large segment leaves the rebuild to a job."""

import pytest

from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.scanning.range_check import NotCheckedError, ReadCheck, read_checked
from quire.storage.segment import lookup
from quire.storage.segment.index_rebuild import IndexRebuild
from quire.storage.time_lookup.time_search import search_now
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS, append_values, open_log

CONFIG = LogConfig(index_interval_bytes=100)
INDEX = f"{FOLDER}/{0:020d}.index"


@pytest.fixture(autouse=True)
def every_segment_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "REBUILT_AT_ONCE_BYTES", 0)


@pytest.fixture
def right(disk: SimDisk) -> bytes:
    """The index of the first segment, before it is overwritten."""
    log = open_log(disk, CONFIG)
    append_values(log, *[bytes(50)] * 20)
    log.roll(NOW_MS)
    append_values(log, b"later")
    log.close()
    content = disk.read_file(INDEX)
    assert len(content) > 16
    disk.open(INDEX).pwritev([b"\x00\x00\x00\x05\x00\x00\x00\x07" * (len(content) // 8)], 0)
    return content


def needed(log: Log, offset: int) -> ReadCheck:
    with pytest.raises(NotCheckedError) as caught:
        log.read(offset, 10_000, in_job=True)
    return caught.value.check


def test_the_event_loop_leaves_it_to_a_job(disk: SimDisk, right: bytes) -> None:
    log = open_log(disk, CONFIG, clean=True)
    wrong = disk.read_file(INDEX)
    rebuild = needed(log, 15)
    assert isinstance(rebuild, IndexRebuild)
    rebuild.run()
    assert disk.read_file(INDEX) == wrong, "the job changes nothing"
    rebuild.finish()
    assert disk.read_file(INDEX) == right
    assert not isinstance(needed(log, 15), IndexRebuild)
    part = read_checked(lambda: log.read(15, 10_000, in_job=True))
    assert part is not None and int.from_bytes(part.read()[:8], "big") == 15


TIME_INDEX = f"{FOLDER}/{0:020d}.timeindex"
BY_TIME = LogConfig(index_interval_bytes=100, retention_ms=1)


@pytest.mark.parametrize("path", [INDEX, TIME_INDEX])
def test_a_look_up_by_time_leaves_it_to_a_job(disk: SimDisk, right: bytes, path: str) -> None:
    log = open_log(disk, CONFIG, clean=True)
    log.delete_records_before(15)
    content = disk.read_file(TIME_INDEX)
    if path == TIME_INDEX:
        disk.open(INDEX).pwritev([right], 0)
        disk.open(TIME_INDEX).truncate(len(content) - 1)
    with pytest.raises(NotCheckedError) as caught:
        log.find_timestamp(NOW_MS)
    assert isinstance(caught.value.check, IndexRebuild)
    found = search_now(lambda searched: log.find_timestamp(NOW_MS, searched))
    assert found is not None and found.offset == 15
    assert (disk.read_file(INDEX), disk.read_file(TIME_INDEX)) == (right, content)
    highest = search_now(log.find_max_timestamp)
    assert highest is not None and highest.offset == 15


def test_retention_leaves_it_to_a_job(disk: SimDisk, right: bytes) -> None:
    log = open_log(disk, BY_TIME, clean=True)
    disk.open(TIME_INDEX).truncate(5)
    with pytest.raises(NotCheckedError):
        log.find_expired(log.end_offset, NOW_MS + 1000)
    expired = read_checked(lambda: log.find_expired(log.end_offset, NOW_MS + 1000))
    assert expired is not None and expired.start_offset == 21


def test_the_result_for_a_segment_that_was_deleted_during_the_job_is_dropped(disk: SimDisk, right: bytes) -> None:
    log = open_log(disk, CONFIG, clean=True)
    rebuild = needed(log, 15)
    rebuild.run()
    log.delete_records_before(20)
    rebuild.finish()
    assert not disk.exists(INDEX), "another segment may have the name by now"


def test_two_reads_need_the_same_rebuild(disk: SimDisk, right: bytes) -> None:
    log = open_log(disk, CONFIG, clean=True)
    assert needed(log, 15).subject == needed(log, 16).subject


def test_the_result_for_a_segment_that_was_truncated_during_the_job_is_dropped(disk: SimDisk, right: bytes) -> None:
    log = open_log(disk, CONFIG, clean=True)
    rebuild = needed(log, 15)
    rebuild.run()
    log.truncate_to(10)
    rebuild.finish()
    assert log.end_offset == 10
    append_values(log, b"new")
    part = read_checked(lambda: log.read(10, 10_000, in_job=True))
    assert part is not None and int.from_bytes(part.read()[:8], "big") == 10


def test_other_look_ups_rebuild_at_once(disk: SimDisk, right: bytes) -> None:
    log = open_log(disk, CONFIG, clean=True)
    assert log.position_of(15).offset == 15
    assert disk.read_file(INDEX) == right


def test_a_small_segment_is_rebuilt_at_once(disk: SimDisk, right: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "REBUILT_AT_ONCE_BYTES", 1 << 20)
    log = open_log(disk, CONFIG, clean=True)
    assert not isinstance(needed(log, 15), IndexRebuild)
    assert disk.read_file(INDEX) == right
