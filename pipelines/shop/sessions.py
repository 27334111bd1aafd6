"""Visits to the shop: events of a user with no pause of ten minutes between them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipelines.shop.events import PRODUCT_VIEWED, PURCHASE_COMPLETED
from pipelines.shop.rows import result

PAUSE = "10 minutes"


def sessions(events: DataFrame) -> DataFrame:
    spent = F.when(F.col("kind") == PURCHASE_COMPLETED, F.col("price_cents") * F.col("quantity")).otherwise(F.lit(0))
    visits = (
        events.groupBy("user_id", F.session_window("event_time", PAUSE).alias("session"))
        .agg(
            F.count("*").alias("events"),
            F.count_if(F.col("kind") == PRODUCT_VIEWED).alias("views"),
            F.count_if(F.col("kind") == PURCHASE_COMPLETED).alias("purchases"),
            F.sum(spent).alias("revenue_cents"),
        )
        .select("user_id", "session.start", "session.end", "events", "views", "purchases", "revenue_cents")
    )
    return result("sessions", visits, key=F.col("user_id"))
