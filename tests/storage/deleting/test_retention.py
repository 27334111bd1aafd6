"""Which segments retention drops, by Kafka's rules."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.storage.deleting.retention import Expired, find_expired
from quire.storage.log_config import LogConfig

NOW_MS = 1_000_000


@dataclass
class Aged:
    base_offset: int
    size: int
    age_ms: int | None
    """None: the test must not read it."""

    def newest_ms(self) -> int:
        assert self.age_ms is not None, "its age does not matter"
        return NOW_MS - self.age_ms


def segments(*sizes_and_ages: tuple[int, int | None]) -> list[Aged]:
    """Segments of ten offsets each, oldest first."""
    return [Aged(number * 10, size, age_ms) for number, (size, age_ms) in enumerate(sizes_and_ages)]


def expired(
    held: list[Aged],
    *,
    retention_ms: int = -1,
    retention_bytes: int = -1,
    high_watermark: int | None = None,
    delete: bool = True,
    at_once_max: int = 100,
) -> Expired | None:
    end_offset = held[-1].base_offset + (10 if held[-1].size else 0)
    return find_expired(
        held,
        LogConfig(delete=delete, retention_ms=retention_ms, retention_bytes=retention_bytes),
        end_offset=end_offset,
        high_watermark=end_offset if high_watermark is None else high_watermark,
        now_ms=NOW_MS,
        at_once_max=at_once_max,
    )


def test_without_limits_nothing_expires_and_no_disk_is_asked() -> None:
    assert expired(segments((100, None), (100, None))) is None


def test_a_segment_expires_when_its_youngest_record_is_older_than_retention_ms() -> None:
    held = segments((100, 5001), (70, 5001), (50, 5000), (100, 9000))
    found = expired(held, retention_ms=5000)
    assert found == Expired(2, 170, 20, "older than retention.ms=5000")


def test_an_old_segment_behind_a_young_one_stays() -> None:
    assert expired(segments((100, 10), (100, 9000)), retention_ms=5000) is None


def test_a_timestamp_in_the_future_keeps_its_segment() -> None:
    assert expired(segments((100, -9000), (100, 9000)), retention_ms=0) is None


@pytest.mark.parametrize(("retention_bytes", "count"), [(450, 0), (400, 0), (350, 0), (300, 1), (299, 1), (0, 4)])
def test_the_oldest_go_while_what_is_left_is_retention_bytes_or_more(retention_bytes: int, count: int) -> None:
    found = expired(segments(*[(100, None)] * 4), retention_bytes=retention_bytes)
    assert (found.segment_count if found else 0) == count
    if found is not None:
        assert found.reason == f"the log is larger than retention.bytes={retention_bytes}"


def test_the_active_segment_expires_too_unless_it_is_empty() -> None:
    assert expired(segments((100, 9000), (100, 9000)), retention_ms=5000) == Expired(
        2, 200, 20, "older than retention.ms=5000"
    )
    assert expired(segments((100, 9000), (0, 9000)), retention_ms=5000) == Expired(
        1, 100, 10, "older than retention.ms=5000"
    )
    assert expired(segments((0, None)), retention_ms=0, retention_bytes=0) is None


def test_nothing_goes_that_is_not_committed() -> None:
    held = segments((100, 9000), (100, 9000), (100, 9000))
    for high_watermark, count in [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (29, 2), (30, 3)]:
        found = expired(held, retention_ms=1, retention_bytes=0, high_watermark=high_watermark)
        assert (found.segment_count if found else 0) == count, high_watermark


def test_a_topic_that_is_only_compacted_keeps_everything() -> None:
    assert expired(segments((100, None), (100, None)), retention_ms=1, retention_bytes=1, delete=False) is None


def test_size_and_age_together_name_both_reasons() -> None:
    found = expired(segments((100, 0), (100, 9000), (100, 0)), retention_ms=5000, retention_bytes=150)
    assert found is not None
    assert (found.segment_count, found.start_offset) == (2, 20)
    assert found.reason == "the log is larger than retention.bytes=150 and older than retention.ms=5000"


def test_many_go_a_few_at_a_time() -> None:
    found = expired(segments(*[(100, 9000)] * 9), retention_ms=1, at_once_max=4)
    assert found == Expired(4, 400, 40, "older than retention.ms=1")


@given(
    sizes=st.lists(st.integers(0, 200), min_size=1, max_size=8),
    ages=st.lists(st.integers(-100, 200), min_size=8, max_size=8),
    retention_ms=st.integers(-1, 150),
    retention_bytes=st.integers(-1, 800),
    high_watermark=st.integers(0, 90),
)
def test_one_pass_drops_what_a_pass_by_size_and_then_one_by_age_would(
    sizes: list[int], ages: list[int], retention_ms: int, retention_bytes: int, high_watermark: int
) -> None:
    held = segments(*zip(sizes, ages[: len(sizes)], strict=True))
    both = expired(held, retention_ms=retention_ms, retention_bytes=retention_bytes, high_watermark=high_watermark)
    by_size = expired(held, retention_bytes=retention_bytes, high_watermark=high_watermark)
    count = by_size.segment_count if by_size else 0
    if count < len(held):
        by_age = expired(held[count:], retention_ms=retention_ms, high_watermark=high_watermark)
        count += by_age.segment_count if by_age else 0
    assert (both.segment_count if both else 0) == count
    left_bytes = sum(sizes[count:])
    if by_size is not None:
        assert sum(sizes[by_size.segment_count :]) >= retention_bytes
    if both is not None:
        assert left_bytes + both.size_bytes == sum(sizes)
        assert both.start_offset <= high_watermark
