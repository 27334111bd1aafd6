"""Positions of a stream: their JSON, the range of a micro-batch between two of them, and invalid positions."""

import json

import pytest

from pyspark_quire.errors import QuireError
from pyspark_quire.positions import Position, Positions, from_json, ranges_between, to_json, without_begins
from pyspark_quire.splits import Range
from quire.client.offsets import TopicPartition

A0, A1, A10, B0 = (TopicPartition(*pair) for pair in (("a", 0), ("a", 1), ("a", 10), ("b", 0)))


def test_equal_positions_have_equal_json_for_any_order_of_partitions() -> None:
    positions = {B0: Position(1, "y"), A10: Position(3, "x"), A1: Position(2, "x", 1), A0: Position(0, "x")}
    text = json.dumps(to_json(positions))
    assert text == json.dumps(to_json(dict(sorted(positions.items()))))
    assert text == (
        '{"a": {"id": "x", "offsets": {"0": 0, "1": 2, "10": 3}, "begins": {"1": 1}}, '
        '"b": {"id": "y", "offsets": {"0": 1}}}'
    )


def test_positions_survive_json() -> None:
    positions: Positions = {A0: Position(5, "x", 2), A1: Position(3, "x", gone=True), B0: Position(2**62, "y")}
    assert from_json(json.loads(json.dumps(to_json(positions)))) == positions
    assert from_json(to_json({})) == {}


@pytest.mark.parametrize("found", [{"a": {"0": 5}}, {"a": 5}, [1], {"a": {"id": "x", "offsets": {"one": 1}}}])
def test_the_checkpoint_of_another_source_is_refused(found: object) -> None:
    with pytest.raises(QuireError, match="it is from another source"):
        from_json(found)


def test_a_micro_batch_reads_from_one_position_to_the_other() -> None:
    start = {A0: Position(5, "x"), A1: Position(7, "x")}
    end = {A0: Position(9, "x"), A1: Position(7, "x")}
    assert ranges_between(start, end) == [Range(A0, "x", 5, 9), Range(A1, "x", 7, 7)]


def test_a_new_partition_is_read_from_where_the_end_says_that_it_begins() -> None:
    end = {A0: Position(9, "x", 4), A1: Position(3, "x")}
    assert ranges_between({}, end) == [Range(A0, "x", 4, 9), Range(A1, "x", 0, 3)]


def test_a_recreated_topic_does_not_continue_where_the_old_one_was() -> None:
    assert ranges_between({A0: Position(500, "old")}, {A0: Position(3, "new", 0)}) == [Range(A0, "new", 0, 3)]


def test_a_start_behind_the_end_is_an_error_with_both() -> None:
    with pytest.raises(QuireError, match="a-0 would be read from offset 9 to 5"):
        ranges_between({A0: Position(9, "x")}, {A0: Position(5, "x")})


def test_the_start_of_a_batch_is_not_part_of_its_end_position() -> None:
    assert without_begins({A0: Position(9, "x", 4)}) == {A0: Position(9, "x")}
