"""When a segment accepts one more append, and when a new one must begin."""

from quire.storage.log_config import LogConfig
from quire.storage.rolling import has_room
from quire.storage.segment import Segment
from simulator.disk import SimDisk
from tests.storage.batches import NOW_MS
from tests.storage.segment.filled_segments import CONFIG, add, new_segment, reopened


def room(segment: Segment, config: LogConfig, **changes: int) -> bool:
    asked = {"size": 100, "last_offset": 105, "timestamp": NOW_MS, "now_ms": NOW_MS, **changes}
    return has_room(segment, asked["size"], asked["last_offset"], asked["timestamp"], asked["now_ms"], config)


def test_an_empty_segment_takes_anything_its_offsets_can_name(disk: SimDisk) -> None:
    segment = new_segment(disk)
    config = LogConfig(segment_bytes=10, segment_ms=1)
    assert room(segment, config, size=1000, now_ms=NOW_MS * 2)
    assert room(segment, config, last_offset=100 + 2**31 - 1)
    assert not room(segment, config, last_offset=100 + 2**31)


def test_a_segment_is_full_by_size(disk: SimDisk) -> None:
    segment = new_segment(disk)
    add(segment, 100)
    config = LogConfig(segment_bytes=segment.size + 100)
    assert room(segment, config, size=100)
    assert not room(segment, config, size=101)


def test_a_segment_is_full_by_the_records_own_time(disk: SimDisk) -> None:
    segment = new_segment(disk)
    add(segment, 100, timestamp=NOW_MS)
    config = LogConfig(segment_ms=1000)
    assert room(segment, config, timestamp=NOW_MS + 1000, now_ms=NOW_MS + 5000)
    assert not room(segment, config, timestamp=NOW_MS + 1001)
    again = reopened(disk)
    assert not room(again, config, timestamp=NOW_MS + 1001), "read from the first batch"


def test_a_segment_is_full_by_the_clock_where_records_have_no_time(disk: SimDisk) -> None:
    segment = new_segment(disk)
    add(segment, 100, timestamp=-1)
    config = LogConfig(segment_ms=1000)
    assert room(segment, config, timestamp=-1, now_ms=NOW_MS + 1000)
    assert not room(segment, config, timestamp=-1, now_ms=NOW_MS + 1001)


def test_jitter_lets_that_happen_earlier_and_never_later(disk: SimDisk) -> None:
    segment = new_segment(disk)
    add(segment, 100, timestamp=NOW_MS)
    config = LogConfig(segment_ms=100_000, segment_jitter_ms=50_000)
    assert room(segment, config, timestamp=NOW_MS + 50_000)
    assert not room(segment, config, timestamp=NOW_MS + 100_001)
    rolled_after = [after for after in range(0, 100_001, 100) if room(segment, config, timestamp=NOW_MS + after)]
    assert 50_000 <= max(rolled_after) < 100_000


def test_a_segment_is_full_by_a_full_index(disk: SimDisk) -> None:
    segment = new_segment(disk, LogConfig(index_interval_bytes=0, segment_index_bytes=36))
    for offset in range(100, 106):
        assert room(segment, CONFIG) == (offset < 105)
        add(segment, offset)
