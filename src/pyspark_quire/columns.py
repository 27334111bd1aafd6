"""The columns of the source: those of Spark's own Kafka source, with the same names and order."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

HEADERS = StructField(
    "headers", ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
)

PLAIN = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
WITH_HEADERS = StructType([*PLAIN.fields, HEADERS])


def read_schema(include_headers: bool) -> StructType:
    return WITH_HEADERS if include_headers else PLAIN
