"""The columns of the sink: those of Spark's own Kafka sink. They are checked before a task runs.

`value` is required; `key`, `headers`, `topic` and `partition` are optional. The other columns of the source are
ignored, so that rows can be written as they were read. Any other column is refused, because it would be lost: a typing
error in a name must not lose the keys.
"""

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    NullType,
    StringType,
    StructType,
)

from pyspark_quire.errors import QuireError

WRITTEN = ("key", "value", "headers", "topic", "partition")
LEFT_OUT = ("offset", "timestamp", "timestampType")

_TEXT = (StringType, BinaryType, NullType)
_NUMBER = (IntegerType, NullType)


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raises QuireError unless rows of this schema can be written, to `topic` if it is given."""
    types = {field.name: field.dataType for field in schema.fields}
    for name in types:
        if name not in WRITTEN and name not in LEFT_OUT:
            raise QuireError(
                f"there is no place in a record for column {name!r}; the sink writes {_listed(WRITTEN)}: "
                "drop the column, or put it into the value, as with to_json(struct('*'))"
            )
    if "value" not in types:
        raise QuireError(f"the sink needs a column 'value', a string or binary; there is {_listed(tuple(types))}")
    if topic is None and "topic" not in types:
        raise QuireError("the topic of the rows is missing: give option topic, or a column 'topic'")
    for name in ("key", "value"):
        _check(types, name, _TEXT, "a string or binary")
    _check(types, "topic", _TEXT[::2], "a string")
    _check(types, "partition", _NUMBER, "an int")
    if "headers" in types and not _are_headers(types["headers"]):
        wanted = "array<struct<key: string, value: binary>>"
        raise QuireError(f"column 'headers' is {types['headers'].simpleString()}, and must be {wanted}")


def _check(types: dict[str, DataType], name: str, allowed: tuple[type[DataType], ...], wanted: str) -> None:
    if name in types and not isinstance(types[name], allowed):
        raise QuireError(f"column {name!r} is {types[name].simpleString()}, and must be {wanted}; cast it")


def _are_headers(kind: DataType) -> bool:
    if isinstance(kind, NullType):
        return True
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return (
        [field.name for field in fields] == ["key", "value"]
        and isinstance(fields[0].dataType, StringType)
        and isinstance(fields[1].dataType, (BinaryType, NullType))
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"
