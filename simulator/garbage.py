"""Garbage of a run: Python looks for cycles often, which takes a tenth of a run's time and frees little.

A world that has ended is garbage in cycles too, of a hundred megabytes if its run was long. It must be collected before
the next run freezes it.
"""

import gc
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 50_000
RUNS_PER_COLLECTION = 5

_runs = itertools.count(1)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collections are rare, and look only at what was allocated since."""
    usual = gc.get_threshold()
    if next(_runs) % RUNS_PER_COLLECTION == 0:
        gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
