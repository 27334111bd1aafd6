"""JSON by a schema and rules: every record becomes a good row or a dead letter."""

import json
from collections.abc import Sequence
from datetime import datetime

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyspark_quire.columns import WITH_HEADERS
from quire.spark.dead_letters import DeadLetter, attempt, headers_to_send_back, read_headers
from quire.spark.parsing import (
    NO_JSON,
    NO_TEXT,
    NULL_VALUE,
    Rule,
    all_good_rows,
    dead_letters,
    good_rows,
    parse_json,
    sink_rows,
)

SCHEMA = "id string, at timestamp, price_cents long"
RULES = [Rule("has_an_id", "event.id IS NOT NULL"), Rule("costs_something", "event.price_cents > 0")]
GOOD = {"id": "a", "at": "2026-01-02T03:04:05.678Z", "price_cents": 250}

Headers = Sequence[tuple[str, bytes | None]]


def records(spark: SparkSession, *values: bytes | None, headers: Headers | None = None) -> DataFrame:
    rows = [
        (b"key", value, "orders", 2, 100 + index, datetime(2026, 1, 1), 0, None if headers is None else list(headers))
        for index, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, WITH_HEADERS)


def errors(parsed: DataFrame) -> list[str | None]:
    return [row.error for row in parsed.orderBy("offset").select("error").collect()]


def encoded(**changes: object) -> bytes:
    return json.dumps(GOOD | changes).encode()


def test_good_rows_have_the_fields_and_where_they_came_from(spark: SparkSession) -> None:
    (row,) = good_rows(parse_json(records(spark, encoded(unheard_of=[1, {}])), SCHEMA, RULES)).collect()
    assert (row.id, row.price_cents, row.topic, row.partition, row.offset) == ("a", 250, "orders", 2, 100)
    assert row["at"] == datetime(2026, 1, 2, 3, 4, 5, 678000)
    assert "unheard_of" not in row


def test_each_kind_of_poison_is_a_dead_letter_with_its_reason(spark: SparkSession) -> None:
    poison: dict[str, list[bytes | None]] = {
        NULL_VALUE: [None],
        NO_TEXT: [b"\xff\xfe", encoded()[:-1] + b"\x80}"],
        NO_JSON: [
            b"",
            b"no json",
            encoded()[:-1],
            b"[1, 2]",
            b"null",
            b'"text"',
            encoded() + encoded(id="b"),
            encoded() + b"\n" + encoded(id="b") + b"\n",
            encoded() + b"," + encoded(id="b"),
            encoded() + b" and more",
            encoded() + b"}",
            encoded(price_cents="dear"),
            encoded(at="soon"),
        ],
        "rule has_an_id does not hold": [encoded(id=None), b"{}"],
        "rule costs_something does not hold": [encoded(price_cents=0), encoded(price_cents=None)],
    }
    values = [value for group in poison.values() for value in group]
    parsed = parse_json(records(spark, *values), SCHEMA, RULES)
    assert errors(parsed) == [reason for reason, group in poison.items() for _ in group]
    assert good_rows(parsed).count() == 0
    assert dead_letters(parsed).count() == len(values)


def test_nothing_is_lost_between_good_rows_and_dead_letters(spark: SparkSession) -> None:
    parsed = parse_json(records(spark, encoded(), b"x", None, encoded(id="b"), encoded(id=None)), SCHEMA, RULES)
    assert [row.id for row in good_rows(parsed).orderBy("offset").collect()] == ["a", "b"]
    assert dead_letters(parsed).count() == 3


def test_a_dead_letter_keeps_key_value_and_headers_and_says_where_it_came_from(spark: SparkSession) -> None:
    parsed = parse_json(records(spark, b"broken", headers=[("trace", b"7"), ("empty", None)]), SCHEMA, RULES)
    (letter,) = dead_letters(parsed).collect()
    assert (letter.topic, bytes(letter.key), bytes(letter.value)) == ("orders.dlq", b"key", b"broken")
    headers = [(header.key, header.value and bytes(header.value)) for header in letter.headers]
    assert headers[:2] == [("trace", b"7"), ("empty", None)]
    assert read_headers(headers) == DeadLetter(NO_JSON, "orders", 2, 100, 1)


@pytest.mark.parametrize("included", [True, False])
def test_a_record_that_fails_again_is_a_dead_letter_of_its_next_attempt(spark: SparkSession, included: bool) -> None:
    sent_back = headers_to_send_back([("trace", b"7"), ("dlq.error", b"old"), ("dlq.attempt", b"1")])
    given = records(spark, b"broken", headers=sent_back)
    (letter,) = dead_letters(parse_json(given if included else given.drop("headers"), SCHEMA)).collect()
    headers = [(header.key, header.value and bytes(header.value)) for header in letter.headers]
    assert attempt(headers) == (2 if included else 1)
    assert [name for name, _ in headers].count("dlq.error") == 1


def test_both_kinds_of_rows_in_one_pass_are_those_of_each_alone(spark: SparkSession) -> None:
    parsed = parse_json(records(spark, encoded(), b"x", None, headers=[("trace", b"7")]), SCHEMA, RULES)
    both = sink_rows(parsed, topic=F.lit("clean"), key=F.col("event.id"), value=F.to_json("event")).collect()
    (good,) = [row for row in both if row.topic == "clean"]
    assert (bytes(good.key), json.loads(good.value)["price_cents"], good.headers) == (b"a", 250, None)
    assert [row for row in both if row.topic != "clean"] == dead_letters(parsed).collect()


def test_with_all_good_rows_an_error_ends_the_query_and_names_the_record(spark: SparkSession) -> None:
    assert all_good_rows(parse_json(records(spark, encoded()), SCHEMA, RULES)).count() == 1
    with pytest.raises(Exception, match="topic orders, partition 2, offset 101: the value is null"):
        all_good_rows(parse_json(records(spark, encoded(), None), SCHEMA, RULES)).collect()
