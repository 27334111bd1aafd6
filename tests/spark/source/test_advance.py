"""How far a stream may advance: new records, new partitions, limits, and everything that can be missing."""

import logging
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_quire.advance import available, capped, count_new, limited, moved
from pyspark_quire.bounds import Bounds
from pyspark_quire.errors import DataLossError
from pyspark_quire.loss import LossPolicy
from pyspark_quire.positions import Position, Positions
from quire.client.offsets import TopicPartition

A0, A1, A2, B0 = (TopicPartition(*pair) for pair in (("a", 0), ("a", 1), ("a", 2), ("b", 0)))


def advance(start: Positions, there: Mapping[TopicPartition, tuple[str, int, int]], fail: bool = True) -> Positions:
    """`there`: topic id, first offset and end of each partition."""
    partitions = {partition: topic_id for partition, (topic_id, _, _) in there.items()}
    extent = {partition: Bounds(earliest, latest) for partition, (_, earliest, latest) in there.items()}
    return available(start, partitions, extent, LossPolicy(fail))


def test_a_stream_may_advance_to_the_current_end() -> None:
    end = advance({A0: Position(5, "x")}, {A0: ("x", 0, 9)})
    assert end == {A0: Position(9, "x")}
    assert moved({A0: Position(5, "x")}, end)


def test_without_news_nothing_moves() -> None:
    start = {A0: Position(9, "x", 4)}
    assert not moved(start, advance(start, {A0: ("x", 0, 9)}))


def test_a_new_partition_is_read_from_its_beginning() -> None:
    end = advance({A0: Position(5, "x")}, {A0: ("x", 0, 5), A1: ("x", 0, 3)})
    assert end == {A0: Position(5, "x"), A1: Position(3, "x", 0)}


def test_a_new_topic_is_read_from_what_is_left_of_it() -> None:
    end = advance({A0: Position(5, "x")}, {A0: ("x", 0, 5), B0: ("y", 40, 60)})
    assert end[B0] == Position(60, "y", 40)


LOSSES = [
    ({A0: ("x", 8, 20)}, Position(20, "x", 8), r"a-0: offsets 5 to 7 are gone, the partition begins at 8 now"),
    ({A0: ("x", 0, 3)}, Position(3, "x", 3), r"a-0: offset 5 is not there, the partition ends at 3"),
    ({A0: ("z", 0, 9)}, Position(9, "z", 0), r"a-0: topic a was deleted and created again \(id x became z\).*offset 5"),
]


@pytest.mark.parametrize(("there", "end", "sentence"), LOSSES)
def test_lost_records_are_an_error_with_topic_partition_and_offsets(
    there: Mapping[TopicPartition, tuple[str, int, int]], end: Position, sentence: str
) -> None:
    with pytest.raises(DataLossError, match=sentence):
        advance({A0: Position(5, "x")}, there)


@pytest.mark.parametrize(("there", "end", "sentence"), LOSSES)
def test_lost_records_are_a_warning_on_request_and_reading_continues(
    there: Mapping[TopicPartition, tuple[str, int, int]], end: Position, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert advance({A0: Position(5, "x")}, there, fail=False) == {A0: end}
    assert "offsets skipped" in caplog.text


def test_skipped_offsets_are_counted() -> None:
    loss = LossPolicy(fail=False)
    loss.overtaken(A0, 5, 8)
    loss.overtaken(A1, 0, 10)
    assert loss.skipped == 13


def test_a_deleted_topic_is_an_error_or_remembered_as_gone() -> None:
    start = {A0: Position(5, "x"), B0: Position(1, "y", 0)}
    with pytest.raises(DataLossError, match="a-0 no longer exists; it was read up to offset 5"):
        advance(start, {B0: ("y", 0, 1)})
    end = advance(start, {B0: ("y", 0, 3)}, fail=False)
    assert end == {A0: Position(5, "x", gone=True), B0: Position(3, "y")}
    assert moved(start, end)
    assert advance(end, {B0: ("y", 0, 3)}) == end, "it was let pass, and is not told again"
    assert not moved(end, end)


def test_a_topic_that_returns_is_continued_and_a_different_one_is_read_from_its_beginning() -> None:
    away = advance({A0: Position(5, "x"), A1: Position(2, "x")}, {}, fail=False)
    assert advance(away, {A0: ("x", 0, 8), A1: ("x", 0, 2)}) == {A0: Position(8, "x"), A1: Position(2, "x")}
    assert advance(away, {A0: ("z", 0, 8)}) == {A0: Position(8, "z", 0)}


def test_an_added_partition_that_is_not_whole_any_more_is_a_loss() -> None:
    with pytest.raises(DataLossError, match="a-1: offsets 0 to 1 are gone"):
        advance({A0: Position(5, "x")}, {A0: ("x", 0, 5), A1: ("x", 2, 3)})


def test_a_stream_with_a_target_stops_at_it() -> None:
    start = {A0: Position(5, "x"), A1: Position(7, "x")}
    end = {A0: Position(9, "x"), A1: Position(20, "x"), A2: Position(4, "x", 0)}
    target = {A0: Position(8, "x"), A1: Position(6, "x")}
    assert capped(start, end, target) == {A0: Position(8, "x"), A1: Position(7, "x")}


def test_a_limit_is_shared_in_proportion() -> None:
    start = {A0: Position(0, "x"), A1: Position(100, "x")}
    end = {A0: Position(300, "x"), A1: Position(200, "x"), A2: Position(10, "x", 10)}
    assert limited(start, end, 40) == {A0: Position(30, "x"), A1: Position(110, "x"), A2: Position(10, "x", 10)}


sizes = st.lists(st.integers(0, 1000), min_size=1, max_size=8)


@given(sizes=sizes, max_offsets=st.integers(1, 3000))
def test_a_limit_is_used_up_and_never_passed(sizes: list[int], max_offsets: int) -> None:
    start = {TopicPartition("a", index): Position(50, "x") for index in range(len(sizes))}
    end = {partition: Position(50 + size, "x") for partition, size in zip(start, sizes, strict=True)}
    taken = limited(start, end, max_offsets)
    assert count_new(start, taken) == min(sum(sizes), max_offsets)
    assert all(start[partition].offset <= taken[partition].offset <= end[partition].offset for partition in end)


@given(sizes=sizes)
def test_a_small_partition_is_not_starved_by_large_ones(sizes: list[int]) -> None:
    start = {TopicPartition("a", index): Position(0, "x") for index in range(len(sizes) + 1)}
    end = {partition: Position(size, "x") for partition, size in zip(start, [*sizes, 10**9], strict=True)}
    taken = limited(start, end, len(end))
    assert all(taken[partition].offset >= 1 for partition in end if end[partition].offset)
