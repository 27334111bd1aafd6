"""Cleans the shop's events: removes duplicates, late events and bots, and turns broken ones into dead letters.

This is one query, so that the numbers of each batch add up: events read = counted + bots + dead letters + duplicates +
late. The first three are observed metrics of the query (`sink_rows` counts dead letters); duplicates and late events
are metrics of its state operator.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipelines.shop.events import RULES, SCHEMA, SHOP_EVENTS
from quire.spark.parsing import parse_json, sink_rows

ALLOWED_LATENESS = "2 minutes"
BOTS = "(?i)bot|crawler|spider"


def clean(records: DataFrame) -> DataFrame:
    """Clean events for shop_events and dead letters for the topics' .dlq, in one stream of rows for the sink."""
    once = _drop_duplicates(parse_json(records, SCHEMA, RULES))
    good = F.col("error").isNull()
    is_bot = good & F.coalesce(F.col("event.agent").rlike(BOTS), F.lit(False))
    judged = once.withColumn("is_bot", is_bot).observe(
        "kept",
        F.count_if(good & ~F.col("is_bot")).alias("counted"),
        F.count_if("is_bot").alias("bots"),
    )
    return sink_rows(
        judged.where(~F.col("is_bot")),
        topic=F.lit(SHOP_EVENTS),
        key=F.col("key"),
        value=F.to_json(F.struct("event.*", F.col("topic").alias("kind"))),
    )


def _drop_duplicates(parsed: DataFrame) -> DataFrame:
    """Drops events with a repeated id and late events, and never a broken one.

    A broken record has no event time here, so no watermark is past it, and its unique position serves as its id.
    """
    good = F.col("error").isNull()
    position = F.concat_ws("/", "topic", "partition", "offset")
    identified = parsed.withColumn("event_time", F.when(good, F.col("event.event_time"))).withColumn(
        "event_id", F.when(good, F.concat(F.lit("id/"), "event.event_id")).otherwise(F.concat(F.lit("at/"), position))
    )
    return identified.withWatermark("event_time", ALLOWED_LATENESS).dropDuplicatesWithinWatermark(["event_id"])
