"""Turns a row of results into a record: JSON for the topic of that result."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812


def result(topic: str, rows: DataFrame, key: Column) -> DataFrame:
    """topic, key and value for the sink; the value has every column of the row."""
    return rows.select(
        F.lit(topic).alias("topic"),
        key.cast("string").cast("binary").alias("key"),
        F.to_json(F.struct("*")).cast("binary").alias("value"),
    )


def iso(time: str) -> Column:
    """A time as JSON has it."""
    return F.date_format(time, "yyyy-MM-dd'T'HH:mm:ss'Z'")
