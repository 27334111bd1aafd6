"""Applies retention: in all partitions at intervals, and in single topics when their settings change.

The node calls `look_at_all` every `log.retention.check.interval.ms`, and `look_at` or `look_at_topic` for single ones.
The work is spread over many turns of the event loop. `LogDirectory.drop_expired` deletes the expired segments.
"""

from functools import partial
from itertools import islice

from quire.node.partitions import Partitions
from quire.replication.partition import Partition
from quire.seams import Clock

_LOOKS_PER_TURN = 16


class Retention:
    __slots__ = ("_clock", "_partitions", "_scheduled", "_waiting")

    def __init__(self, partitions: Partitions, clock: Clock) -> None:
        self._partitions = partitions
        self._clock = clock
        self._waiting: dict[Partition, None] = {}
        """Partitions that are still to be checked, in order."""
        self._scheduled = False

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def look_at_all(self) -> None:
        self._waiting.update(dict.fromkeys(self._partitions))
        self._schedule()

    def look_at_topic(self, name: str) -> None:
        self._waiting.update(dict.fromkeys(self._partitions.of_topic(name)))
        self._schedule()

    def look_at(self, partition: Partition) -> None:
        self._waiting[partition] = None
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._look_at_some)

    def _look_at_some(self) -> None:
        self._scheduled = False
        try:
            for partition in list(islice(self._waiting, _LOOKS_PER_TURN)):
                del self._waiting[partition]
                self._partitions.drop_expired(partition, partial(self.look_at, partition))
        finally:
            self._schedule()
