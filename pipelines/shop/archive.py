"""Archives every record of the shop's topics unchanged, including broken ones, in a Delta table by date."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812


def archive(records: DataFrame) -> DataFrame:
    """The record, its origin, and the date on which it was written; a key that is not text is complete only in
    `key`."""
    return records.select(
        F.to_date("timestamp").alias("date"),
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key",
        F.make_valid_utf8(F.col("key").cast("string")).alias("user_id"),
        "value",
    )
