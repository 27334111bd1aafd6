"""The struct formats of fixed-size fields, and packers for rows of numbers."""

from functools import cache
from struct import Struct
from typing import Final

FIXED: Final = {
    "boolean": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "uuid": "16s",
}
"""The kinds of fields with a fixed size."""

SIZES: Final = {kind: Struct(">" + letter).size for kind, letter in FIXED.items()}

SHORT_ROW: Final = 8


@cache
def short_rows(letter: str) -> tuple[Struct, ...]:
    """Rows of up to `SHORT_ROW` values, such as the replicas of a partition, by their length."""
    return tuple(Struct(f">{count}{letter}") for count in range(SHORT_ROW + 1))
