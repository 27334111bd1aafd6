"""Which columns can be written, and what is said of the others."""

import pytest
from pyspark.sql.types import StructType

from pyspark_quire.columns import WITH_HEADERS
from pyspark_quire.errors import QuireError
from pyspark_quire.sink_columns import check_columns

HEADERS = "array<struct<key: string, value: binary>>"


def schema(text: str) -> StructType:
    found = StructType.fromDDL(text)
    assert isinstance(found, StructType)
    return found


@pytest.mark.parametrize(
    "columns",
    [
        "value string",
        "key string, value binary",
        f"key binary, value string, headers {HEADERS}, topic string, partition int",
    ],
)
def test_columns_of_a_record_can_be_written(columns: str) -> None:
    check_columns(schema(columns), "t")


def test_what_was_read_can_be_written_as_it_is() -> None:
    check_columns(WITH_HEADERS, None)


@pytest.mark.parametrize(
    ("columns", "topic", "sentence"),
    [
        ("key string", "t", "needs a column 'value', a string or binary; there is key"),
        ("value string", None, "where the rows go is not said: give option topic, or a column 'topic'"),
        ("value int", "t", "column 'value' is int, and must be a string or binary; cast it"),
        ("key bigint, value string", "t", "column 'key' is bigint"),
        ("value string, topic binary", None, "column 'topic' is binary, and must be a string"),
        ("value string, partition string", "t", "column 'partition' is string, and must be an int"),
        ("value string, headers map<string, binary>", "t", "must be array<struct<key: string, value: binary>>"),
        ("value string, headers array<struct<k: string, v: binary>>", "t", "column 'headers' is array<struct<k"),
        ("value string, kye string", "t", "no place in a record for column 'kye'; the sink writes key, value, headers"),
    ],
)
def test_other_columns_are_refused_in_a_sentence(columns: str, topic: str | None, sentence: str) -> None:
    with pytest.raises(QuireError) as refused:
        check_columns(schema(columns), topic)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
