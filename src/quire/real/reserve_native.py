# cython: language_level=3
# mypy: disable-error-code="valid-type, import-untyped, import-not-found, name-defined, no-any-return"
# ruff: noqa: RET505, F821  (without its `else`, what is only for the compiler would be run too)
"""Sets blocks of the disk aside for what a file is about to get, where the system can do that."""

from __future__ import annotations

import cython

COMPILED: bool = cython.compiled


def reserve(number: cython.int, position: cython.longlong, size: cython.longlong) -> bool:
    """Whether the descriptor's file now has its blocks from `position` on; its length stays as it is."""
    if cython.compiled:
        return reserve_blocks(number, position, size) == 0
    else:
        return False
