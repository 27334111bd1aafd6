"""Which columns can be written, and the errors for the others."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from pyspark_quire.columns import WITH_HEADERS
from pyspark_quire.errors import QuireError
from pyspark_quire.sink_columns import check_columns

TYPES = {"string": StringType(), "binary": BinaryType(), "int": IntegerType(), "bigint": LongType()}


def headers(key: str = "key", value: str = "value") -> DataType:
    return ArrayType(StructType([StructField(key, StringType()), StructField(value, BinaryType())]))


def schema(**columns: str | DataType) -> StructType:
    return StructType(
        [StructField(name, TYPES[kind] if isinstance(kind, str) else kind) for name, kind in columns.items()]
    )


@pytest.mark.parametrize(
    "columns",
    [
        schema(value="string"),
        schema(key="string", value="binary"),
        schema(key="binary", value="string", headers=headers(), topic="string", partition="int"),
        schema(key=NullType(), value="string", headers=NullType()),
    ],
)
def test_columns_of_a_record_can_be_written(columns: StructType) -> None:
    check_columns(columns, "t")


def test_rows_that_were_read_can_be_written_unchanged() -> None:
    check_columns(WITH_HEADERS, None)


@pytest.mark.parametrize(
    ("columns", "topic", "sentence"),
    [
        (schema(key="string"), "t", "needs a column 'value', a string or binary; there is key"),
        (schema(value="string"), None, "the topic of the rows is missing: give option topic, or a column 'topic'"),
        (schema(value="int"), "t", "column 'value' is int, and must be a string or binary; cast it"),
        (schema(key="bigint", value="string"), "t", "column 'key' is bigint"),
        (schema(value="string", topic="binary"), None, "column 'topic' is binary, and must be a string"),
        (schema(value="string", partition="string"), "t", "column 'partition' is string, and must be an int"),
        (schema(value="string", headers="string"), "t", "must be array<struct<key: string, value: binary>>"),
        (schema(value="string", headers=headers("k", "v")), "t", "column 'headers' is array<struct<k"),
        (
            schema(value="string", kye="string"),
            "t",
            "no place in a record for column 'kye'; the sink writes key, value",
        ),
    ],
)
def test_other_columns_are_refused_in_a_sentence(columns: StructType, topic: str | None, sentence: str) -> None:
    with pytest.raises(QuireError) as refused:
        check_columns(columns, topic)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
