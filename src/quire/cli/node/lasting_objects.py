"""Hides long-lived objects from Python's garbage collector: a full collection with 80,000 partitions would pause a
node for a third of a second.

Objects that exist when a node is ready stay alive, and so do partitions that are created later. They are frozen again
when the number of partitions has grown by a quarter. The objects of a request are in no cycles, so collections can be
rare; with the default threshold, waiting requests alone would trigger them all the time.
"""

import gc
from collections.abc import Callable

from quire.seams import Clock

_COLLECT_EVERY = 20_000
"""How many objects must be allocated before the next collection."""
LOOK_EVERY_MS = 1_000.0
GROWTH = 1.25
AT_LEAST = 1_000


class LastingObjects:
    def __init__(self, clock: Clock, partition_count: Callable[[], int]) -> None:
        self._clock = clock
        self._partition_count = partition_count
        self._known = 0

    def node_is_ready(self) -> None:
        gc.collect()
        gc.set_threshold(_COLLECT_EVERY)
        self._freeze()
        self._look_later()

    def _check(self) -> None:
        if self._partition_count() >= GROWTH * self._known + AT_LEAST:
            # No collection first: it would pause the node for as long as the collections that this avoids.
            self._freeze()
        self._look_later()

    def _freeze(self) -> None:
        self._known = self._partition_count()
        gc.freeze()

    def _look_later(self) -> None:
        self._clock.call_later(LOOK_EVERY_MS, self._check)
