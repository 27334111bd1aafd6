"""Copies orders of a hundred francs and more to their own topic; records that are not orders go to orders.dlq."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from quire.spark.parsing import Rule, parse_json, sink_rows

RULES = [Rule("has_an_amount", "event.amount_cents > 0")]


def big_orders(records: DataFrame) -> DataFrame:
    parsed = parse_json(records, "customer string, amount_cents long", RULES)
    wanted = parsed.where("error IS NOT NULL OR event.amount_cents >= 10000")
    return sink_rows(wanted, topic=F.lit("big_orders"), key=F.col("event.customer"), value=F.to_json("event"))
