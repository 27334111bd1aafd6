"""Random messages that a version can carry, drawn from the schema classes themselves."""

from typing import Any

from hypothesis import strategies as st

from quire.protocol.errors import ErrorCode
from quire.protocol.schema import Field, Message, Struct

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}


def _integers(kind: str) -> st.SearchStrategy[int]:
    bits = _BITS[kind]
    if kind.startswith("u"):
        return st.integers(0, 2**bits - 1)
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


# Lengths around 127 are where a compact length grows a second byte.
_TEXT = st.one_of(st.text(max_size=6), st.sampled_from(["", "x" * 126, "y" * 127, "é" * 100]))
_BYTES = st.one_of(st.binary(max_size=6), st.sampled_from([b"", b"z" * 126, b"z" * 127]))

VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{kind: _integers(kind) for kind in _BITS},
    "float64": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": _TEXT,
    "binary": _BYTES,
    "record_batches": _BYTES,
}
_ERROR_CODES = st.sampled_from([int(code) for code in ErrorCode])
_TIMES_MS = st.integers(0, 2**41)
_UNKNOWN_TAGS = st.dictionaries(st.integers(100, 20_000), _BYTES, max_size=2)
_COUNTS = st.integers(0, 2)
_ONE_IN_FOUR = st.sampled_from([False, False, False, True])


@st.composite
def messages(
    draw: st.DrawFn, message: type[Message], version: int, *, plain: bool = False, unknown_tags: bool = True
) -> Any:
    """Messages of one version.

    `plain` messages have only valid error codes and times, which other implementations require.
    """
    flexible = message.FLEXIBLE is not None and version >= message.FLEXIBLE

    def structure(cls: type[Struct]) -> Struct:
        values = {field.name: value(field) for field in cls.FIELDS if field.in_version(version)}
        drawn = cls(**values)
        if flexible and unknown_tags and draw(_ONE_IN_FOUR):
            drawn.unknown_tags = draw(_UNKNOWN_TAGS) or None
        return drawn

    def value(field: Field) -> Any:
        if field.nullable_in(version) and draw(_ONE_IN_FOUR):
            return None
        if field.kind == "struct":
            return structure(field.structure)
        if field.kind != "array":
            return basic(field.kind, field.name)
        count = draw(_COUNTS)
        if isinstance(field.of, str):
            return [basic(field.of, field.name) for _ in range(count)]
        return [structure(field.structure) for _ in range(count)]

    def basic(kind: str, name: str) -> Any:
        if plain and kind == "int16" and name.endswith("error_code"):
            return draw(_ERROR_CODES)
        if plain and kind == "int64" and name.endswith(("_ms", "timestamp")):
            return draw(_TIMES_MS)
        return draw(VALUES[kind])

    return structure(message)
