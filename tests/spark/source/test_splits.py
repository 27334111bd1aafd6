"""Splits: everything once, in order, as many as requested, and determined by the input alone."""

from hypothesis import given
from hypothesis import strategies as st

from pyspark_quire.splits import SMALL_OFFSETS, Range, plan_tasks, split_ranges
from quire.client.offsets import TopicPartition


def part(partition: int, start: int, end: int) -> Range:
    return Range(TopicPartition("t", partition), "id", start, end)


def test_a_partition_is_one_split_unless_the_options_say_otherwise() -> None:
    assert split_ranges([part(1, 5, 9), part(0, 0, 10**9)]) == [part(0, 0, 10**9), part(1, 5, 9)]


def test_an_empty_range_makes_no_split() -> None:
    assert split_ranges([part(0, 5, 5)], min_splits=4) == []


def test_large_partitions_are_cut_first() -> None:
    cuts = split_ranges([part(0, 0, 10), part(1, 0, 90)], min_splits=4)
    assert cuts == [part(0, 0, 10), part(1, 0, 30), part(1, 30, 60), part(1, 60, 90)]


def test_no_split_spans_more_offsets_than_allowed() -> None:
    cuts = split_ranges([part(0, 3, 25)], max_records=10)
    assert cuts == [part(0, 3, 10), part(0, 10, 17), part(0, 17, 25)]


ranges = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 200)), max_size=6).map(
    lambda found: [part(index, start, start + size) for index, (start, size) in enumerate(found)]
)


def test_small_partitions_beside_a_large_one_do_not_make_more_splits_than_asked_for() -> None:
    cuts = split_ranges([part(0, 0, 1), part(1, 0, 1), part(2, 0, 6)], min_splits=4)
    assert cuts == [part(0, 0, 1), part(1, 0, 1), part(2, 0, 3), part(2, 3, 6)]


@given(
    whole=ranges, min_splits=st.none() | st.integers(1, 40), max_records=st.none() | st.integers(1, 60), data=st.data()
)
def test_every_offset_is_in_one_split_for_any_options(
    whole: list[Range], min_splits: int | None, max_records: int | None, data: st.DataObject
) -> None:
    cuts = split_ranges(whole, min_splits, max_records)
    offsets = [(cut.topic_partition, offset) for cut in cuts for offset in range(cut.start, cut.end)]
    assert offsets == [(one.topic_partition, offset) for one in whole for offset in range(one.start, one.end)]
    assert all(cut.size > 0 for cut in cuts)
    if max_records is not None:
        assert all(cut.size <= max_records for cut in cuts)
    if min_splits is not None:
        assert len(cuts) >= min(min_splits, len(offsets))
    if min_splits is not None and max_records is None:
        assert len(cuts) == max(sum(one.size > 0 for one in whole), min(min_splits, len(offsets)))
    shuffled = data.draw(st.permutations(whole))
    assert split_ranges(shuffled, min_splits, max_records) == cuts


def test_a_task_takes_several_partitions_that_have_little() -> None:
    small, large = part(0, 0, SMALL_OFFSETS // 2), part(2, 0, SMALL_OFFSETS)
    assert plan_tasks([small, part(1, 5, 9), large]) == [[small, part(1, 5, 9)], [large]]


def test_nothing_goes_together_when_the_number_of_tasks_is_asked_for() -> None:
    assert plan_tasks([part(0, 0, 2), part(1, 0, 2)], min_splits=2) == [[part(0, 0, 2)], [part(1, 0, 2)]]


def test_ranges_combined_in_one_split_are_no_more_than_a_task_may_have() -> None:
    assert plan_tasks([part(0, 0, 6), part(1, 0, 6)], max_records=10) == [[part(0, 0, 6)], [part(1, 0, 6)]]


@given(whole=ranges, max_records=st.none() | st.integers(1, 60))
def test_tasks_have_what_the_splits_have_in_the_same_order(whole: list[Range], max_records: int | None) -> None:
    tasks = plan_tasks(whole, max_records=max_records)
    assert [cut for parts in tasks for cut in parts] == split_ranges(whole, max_records=max_records)
    if max_records is not None:
        assert all(sum(cut.size for cut in parts) <= max_records for parts in tasks)
