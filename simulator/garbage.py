"""Garbage of a run: Python looks for cycles often, which takes a tenth of a run's time and frees little."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 50_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collections are rare, and look only at what was allocated since."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
