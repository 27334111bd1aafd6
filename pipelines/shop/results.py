"""All results that are computed from clean events, in one query with one sink: each row names the topic of its result.

Four queries would each run their own micro-batches, which is slow on two cores; one reads, plans and commits once.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipelines.shop.events import CLEAN_SCHEMA
from pipelines.shop.sales import sales_5m, sales_per_minute
from pipelines.shop.sessions import sessions
from pipelines.shop.top_products import top_viewed_products
from quire.spark.parsing import all_good_rows, parse_json
from quire.spark.progress import READ

ALLOWED_LATENESS = "5 minutes"
"""More than `clean` allows: an event that passed `clean` must not be late here because batches end at other offsets."""


def results(records: DataFrame) -> DataFrame:
    events = all_good_rows(parse_json(records, CLEAN_SCHEMA)).withWatermark("event_time", ALLOWED_LATENESS)
    # Spark counts the input of each branch, so the number of events is that of one branch.
    counted = events.observe(READ, F.count("*").alias("rows"))
    parts = [sessions(counted), *(job(events) for job in (sales_per_minute, sales_5m, top_viewed_products))]
    together = parts[0]
    for part in parts[1:]:
        together = together.unionByName(part)
    return together
