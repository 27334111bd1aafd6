"""Keeps Python's garbage collector from looking at what lasts: a full look at 80,000 partitions holds up a node for a
third of a second.

What is alive when a node is ready stays alive, and so do partitions that are created later: they are moved out of the
collector's sight when there are a quarter more than at the last time. What requests leave behind is in no circles, so
the collector looks seldom; waiting requests are enough to make it look all the time otherwise.
"""

import gc
from collections.abc import Callable

from quire.seams import Clock

_COLLECT_EVERY = 20_000
"""How many more objects there must be than at the last look before the collector looks for garbage again."""
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

    def _look(self) -> None:
        if self._partition_count() >= GROWTH * self._known + AT_LEAST:
            # Nothing is collected first, which would take as long as what this is for.
            self._freeze()
        self._look_later()

    def _freeze(self) -> None:
        self._known = self._partition_count()
        gc.freeze()

    def _look_later(self) -> None:
        self._clock.call_later(LOOK_EVERY_MS, self._look)
