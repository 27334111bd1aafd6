"""The ten most viewed products of every five minutes."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipelines.shop.events import PRODUCT_VIEWED
from pipelines.shop.rows import iso, result

WINDOW = "5 minutes"
SHOWN = 10


def top_viewed_products(events: DataFrame) -> DataFrame:
    views = (
        events.where(F.col("kind") == PRODUCT_VIEWED)
        .groupBy(F.window("event_time", WINDOW).alias("window"), "product_id")
        .agg(F.count("*").alias("views"))
    )
    # Among products viewed equally often the first in the alphabet wins, so that the order is always the same.
    ranked = F.array_sort(F.collect_list(F.struct((-F.col("views")).alias("rank"), "product_id", "views")))
    top = (
        views.groupBy(F.window(F.window_time("window"), WINDOW).alias("window"))
        .agg(F.sum("views").alias("views"), F.slice(ranked, 1, SHOWN).alias("ranked"))
        .select(
            "window.start",
            "window.end",
            "views",
            F.transform("ranked", lambda product: product.dropFields("rank")).alias("products"),
        )
    )
    return result("top_viewed_products", top, key=iso("start"))
