# cython: language_level=3
# mypy: disable-error-code="valid-type, import-untyped, import-not-found, name-defined, no-any-return"
# ruff: noqa: RET505, F821  (without the `else`, the branch for the compiler would be run too)
"""Allocates blocks for the next writes of a file, if the system supports that."""

from __future__ import annotations

import cython

COMPILED: bool = cython.compiled


def reserve(number: cython.int, position: cython.longlong, size: cython.longlong) -> bool:
    """Whether the blocks from `position` on are allocated now; the length of the file does not change."""
    if cython.compiled:
        return reserve_blocks(number, position, size) == 0
    else:
        return False
