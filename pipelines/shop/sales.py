"""Sales per minute, and in windows of five minutes that begin every minute, in event time."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipelines.shop.events import PURCHASE_COMPLETED
from pipelines.shop.rows import iso, result


def sales_per_minute(events: DataFrame) -> DataFrame:
    return result("sales_per_minute", _sales(events, F.window("event_time", "1 minute")), key=iso("start"))


def sales_5m(events: DataFrame) -> DataFrame:
    return result("sales_5m", _sales(events, F.window("event_time", "5 minutes", "1 minute")), key=iso("start"))


def _sales(events: DataFrame, window: Column) -> DataFrame:
    purchases = events.where(F.col("kind") == PURCHASE_COMPLETED)
    return (
        purchases.groupBy(window.alias("window"))
        .agg(
            F.count("*").alias("orders"),
            F.sum("quantity").alias("items"),
            F.sum(F.col("price_cents") * F.col("quantity")).alias("revenue_cents"),
        )
        .select("window.start", "window.end", "orders", "items", "revenue_cents")
    )
