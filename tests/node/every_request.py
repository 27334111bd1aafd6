"""A request of any API in any version with every field filled, which refers to something that exists."""

from collections.abc import Mapping
from typing import Any

from quire.protocol.schema import Field, Message, Struct, default_value

Values = Mapping[str, Any]
"""By "Structure.field", or by the name of a field alone."""

_BY_KIND: dict[str, Any] = {
    "boolean": True,
    "string": "something",
    "binary": b"something",
    "record_batches": None,
    "float64": 1.0,
    "uuid": bytes(range(16)),
}


def filled(message: type[Message], version: int, values: Values) -> Message:
    """Fields that the version does not have keep their defaults; lists have one element."""
    request = _filled(message, version, values)
    assert isinstance(request, Message)
    return request


def _filled(structure: type[Struct], version: int, values: Values) -> Struct:
    return structure(
        **{
            field.name: _value(structure, field, version, values) if field.in_version(version) else default_value(field)
            for field in structure.FIELDS
        }
    )


def _value(structure: type[Struct], field: Field, version: int, values: Values) -> Any:
    for key in (f"{structure.__name__}.{field.name}", field.name):
        if key in values:
            return values[key]
    if field.kind == "struct":
        return _filled(field.structure, version, values)
    if field.kind == "array":
        return [_filled(field.structure, version, values) if isinstance(field.of, type) else _basic(str(field.of))]
    return _basic(field.kind)


def _basic(kind: str) -> Any:
    return _BY_KIND.get(kind, 1)
