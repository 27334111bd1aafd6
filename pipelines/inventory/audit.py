"""Archives the events of the stock in the lake, and finds missing ones there.

`archive` and `archive_refusals` are jobs: they turn records of `inventory-events` and `inventory-refusals` into rows of
a Delta table. The source must read committed records only. A record that no processor wrote stops the job and is named:
an incomplete archive would prove nothing. `find_gaps` checks an archived table: the events of an item are numbered from
1, so every missing number is a missing event.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from quire.spark.parsing import ORIGIN, Rule, parse_json

EVENT_SCHEMA = (
    "item string, sequence long, change long, level long, kind string, command string, line int, lines int, "
    "at_ms long, source_partition int, source_offset long"
)
EVENT_RULES = (
    Rule("has_an_item", "event.item IS NOT NULL"),
    Rule("is_numbered", "event.sequence >= 1"),
    Rule("has_a_change", "event.change IS NOT NULL"),
    Rule("has_a_level", "event.level >= 0"),
    Rule("has_a_source", "event.source_partition >= 0 AND event.source_offset >= 0"),
)
REFUSAL_SCHEMA = (
    "reason string, detail string, command string, kind string, at_ms long, "
    "source_partition int, source_offset long, quote string"
)
REFUSAL_RULES = (
    Rule("has_a_reason", "event.reason IS NOT NULL"),
    Rule("has_a_source", "event.source_partition >= 0 AND event.source_offset >= 0"),
)


def archive(records: DataFrame) -> DataFrame:
    return _rows(parse_json(records, EVENT_SCHEMA, EVENT_RULES))


def archive_refusals(records: DataFrame) -> DataFrame:
    return _rows(parse_json(records, REFUSAL_SCHEMA, REFUSAL_RULES))


def find_gaps(events: DataFrame) -> DataFrame:
    """item, first_missing and last_missing of every range of missing numbers; no rows if nothing is missing."""
    before = F.coalesce(F.lag("sequence").over(Window.partitionBy("item").orderBy("sequence")), F.lit(0))
    numbered = events.select("item", "sequence").distinct().withColumn("before", before)
    return numbered.where(F.col("sequence") > F.col("before") + 1).select(
        "item", (F.col("before") + 1).alias("first_missing"), (F.col("sequence") - 1).alias("last_missing")
    )


def _rows(parsed: DataFrame) -> DataFrame:
    """The fields, the origin of the record, and the date on which it was written."""
    checked = parsed.withColumn("event", F.when(F.col("error").isNull(), F.col("event")).otherwise(_stop()))
    return checked.select("event.*", *ORIGIN, F.to_date("timestamp").alias("date"))


def _stop() -> Column:
    origin = F.format_string("%s-%d has something at offset %d", "topic", "partition", "offset")
    return F.raise_error(F.concat(origin, F.lit(" that no processor wrote: "), "error"))
