"""Looks for segments that have had their time, in all partitions every so often and in some when their settings change.

The node calls `look_at_all` (`log.retention.check.interval.ms`) and `look_at`. Looking is spread over many turns of the
event loop; what is then done about a log, and in which order, is `LogDirectory.drop_expired`'s.
"""

from quire.node.partitions import Partitions
from quire.replication.partition import Partition
from quire.seams import Clock
from quire.storage.turns import Turns

_LOOKS_PER_TURN = 16


class Retention:
    __slots__ = ("_partitions", "_turns", "_waiting")

    def __init__(self, partitions: Partitions, clock: Clock) -> None:
        self._partitions = partitions
        self._turns = Turns(clock, _LOOKS_PER_TURN)
        self._waiting: dict[Partition, None] = {}
        """Partitions that will be looked at."""

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def look_at_all(self) -> None:
        for partition in self._partitions:
            self.look_at(partition)

    def look_at_topic(self, name: str) -> None:
        for partition in self._partitions.of_topic(name):
            self.look_at(partition)

    def look_at(self, partition: Partition) -> None:
        if partition not in self._waiting:
            self._waiting[partition] = None
            self._turns.add(lambda: self._look(partition))

    def _look(self, partition: Partition) -> None:
        del self._waiting[partition]
        self._partitions.drop_expired(partition, lambda: self.look_at(partition))
