"""Parses JSON values by a schema and named rules into good rows and dead letters.

    parsed = parse_json(records, "id string, price_cents long", [Rule("has_an_id", "event.id IS NOT NULL")])
    good_rows(parsed)      # the fields, and where each came from
    dead_letters(parsed)   # rows for format("quire"), for <topic>.dlq
    sink_rows(parsed, ...) # both in one pass, for a query that writes both

`records` are what `format("quire")` reads. Each one is either a good row or a dead letter: nothing is dropped, and a
field with the wrong type makes a dead letter instead of a null. Fields that the schema does not have are ignored, so
that producers may add some.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as every Spark program has it)
from pyspark.sql.types import BooleanType, StringType, StructField, StructType, _parse_datatype_string

from quire.spark import dead_letters as names

CORRUPT = "_corrupt_record"
ORIGIN = ("topic", "partition", "offset", "timestamp")

_ENVELOPE = "_envelope"
_END = "_end"
_HEADERS = "array<struct<key:string,value:binary>>"

_numbers = itertools.count()  # each observation of a query needs a different name

NULL_VALUE = "the value is null"
NO_TEXT = "the value is not UTF-8"
NO_JSON = "the value is not JSON of the expected shape"


class Rule(NamedTuple):
    """A condition for good events, in SQL over `event` and the record's columns; null means that it does not hold."""

    name: str
    holds: str


def parse_json(records: DataFrame, schema: str | StructType, rules: Sequence[Rule] = ()) -> DataFrame:
    """The records with `event`, the fields of the schema, and `error`: null, or the reason for a dead letter."""
    fields = schema if isinstance(schema, StructType) else _parse_datatype_string(schema)
    assert isinstance(fields, StructType)
    envelope = StructType(
        [StructField("event", fields), StructField(_END, BooleanType()), StructField(CORRUPT, StringType())]
    )
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    # Spark parses one JSON value and ignores what follows. Inside another object, anything that follows is an error.
    enclosed = F.concat(F.lit('{"event":'), F.col("value").cast("string"), F.lit(f',"{_END}":true}}'))
    parsed = records.withColumn(_ENVELOPE, F.from_json(enclosed, envelope, options))
    with_event = parsed.withColumn("event", F.col(f"{_ENVELOPE}.event"))
    return with_event.withColumn("error", _first_error(rules)).drop(_ENVELOPE)


def good_rows(parsed: DataFrame) -> DataFrame:
    """The fields of every good event, and the record's topic, partition, offset and timestamp."""
    return parsed.where(F.col("error").isNull()).select("event.*", *ORIGIN)


def all_good_rows(parsed: DataFrame) -> DataFrame:
    """The rows of a topic that must have only good ones, as one that a pipeline writes: an error ends the query."""
    message = F.format_string("topic %s, partition %d, offset %d: %s", "topic", "partition", "offset", "error")
    checked = F.when(F.col("error").isNotNull(), F.raise_error(message)).otherwise(F.col("event"))
    return parsed.select(checked.alias("event"), *ORIGIN).select("event.*", *ORIGIN)


def dead_letters(parsed: DataFrame) -> DataFrame:
    """Every record with an error as a row for its dead-letter topic: topic, key, value and headers."""
    return parsed.where(F.col("error").isNotNull()).select(*_dead_letter_columns(parsed))


def sink_rows(parsed: DataFrame, *, topic: Column, key: Column, value: Column) -> DataFrame:
    """Good events with these columns, and dead letters, as rows for `format("quire")`, in one pass.

    A union of `good_rows` and `dead_letters` has the same rows, but reads the source twice. Dead letters are counted
    for `quire pipelines status`.
    """
    counted = parsed.observe(f"sink_rows_{next(_numbers)}", F.count("error").alias("dead_letters"))
    good = F.col("error").isNull()
    dead = dict(zip(("topic", "key", "value", "headers"), _dead_letter_columns(parsed), strict=True))
    return counted.select(
        F.when(good, topic).otherwise(dead["topic"]).alias("topic"),
        F.when(good, key.cast("binary")).otherwise(dead["key"]).alias("key"),
        F.when(good, value.cast("binary")).otherwise(dead["value"]).alias("value"),
        F.when(~good, dead["headers"]).alias("headers"),
    )


def _dead_letter_columns(parsed: DataFrame) -> list[Column]:
    given = F.col("headers") if "headers" in parsed.columns else F.array().cast(_HEADERS)
    return [
        F.concat("topic", F.lit(names.SUFFIX)).alias("topic"),
        F.col("key").cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        F.concat(_own(given), F.array(*_reasons(given))).alias("headers"),
    ]


def _first_error(rules: Sequence[Rule]) -> Column:
    checks: list[tuple[Column, str]] = [
        (F.col("value").isNull(), NULL_VALUE),
        (~F.is_valid_utf8(F.col("value").cast("string")), NO_TEXT),
        (F.col("event").isNull() | F.col(f"{_ENVELOPE}.{CORRUPT}").isNotNull(), NO_JSON),
        (F.col(f"{_ENVELOPE}.{_END}").isNull(), NO_JSON),
        *((~F.coalesce(F.expr(rule.holds), F.lit(False)), f"rule {rule.name} does not hold") for rule in rules),
    ]
    errors = [F.when(broken, F.lit(sentence)) for broken, sentence in checks]
    return F.coalesce(*errors)


def _own(headers: Column) -> Column:
    return F.filter(F.coalesce(headers, F.array()), lambda header: ~header["key"].startswith(names.PREFIX))


def _reasons(headers: Column) -> list[Column]:
    was = F.filter(F.coalesce(headers, F.array()), lambda header: header["key"] == names.ATTEMPT)
    attempt = F.coalesce(F.try_element_at(was, F.lit(-1))["value"].cast("string"), F.lit(str(names.FIRST_ATTEMPT)))
    reasons = {
        names.ERROR: F.col("error"),
        names.TOPIC: F.col("topic"),
        names.PARTITION: F.col("partition").cast("string"),
        names.OFFSET: F.col("offset").cast("string"),
        names.ATTEMPT: attempt,
    }
    return [
        F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
        for name, value in reasons.items()
    ]
