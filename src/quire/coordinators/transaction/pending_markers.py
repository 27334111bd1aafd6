"""PendingMarkers: the partitions of a decided transaction that have no marker yet, and when each is due."""

import logging

from quire.coordinators.transaction.transactions import Markers
from quire.metadata.partition_image import NO_LEADER

log = logging.getLogger("quire.coordinators")

FIRST_BACKOFF_MS = 20.0
LONGEST_BACKOFF_MS = 1_000.0

Partition = tuple[str, int]


class PendingMarkers:
    """`missing` has for each partition when its marker is due, and the node whose response is awaited, if any."""

    __slots__ = ("asks_for_image", "backoff_ms", "has_latest_image", "markers", "missing")

    def __init__(self, markers: Markers) -> None:
        self.markers = markers
        self.backoff_ms = FIRST_BACKOFF_MS
        self.asks_for_image = False
        self.has_latest_image = False
        """Whether the image has all that was committed when the transaction was decided: then an unknown partition is a
        deleted one."""
        self.missing: dict[Partition, tuple[float, int]] = {
            (topic, index): (0.0, NO_LEADER) for topic, indexes in markers.partitions.items() for index in indexes
        }

    def is_due(self, now_ms: float) -> bool:
        return any(due_ms <= now_ms for due_ms, _ in self.missing.values())

    @property
    def due_ms(self) -> float:
        return min(due_ms for due_ms, _ in self.missing.values())

    def back_off(self, partition: Partition, now_ms: float) -> None:
        if partition in self.missing:
            self.missing[partition] = (now_ms + self.backoff_ms, NO_LEADER)

    def slow_down(self) -> None:
        """Doubles the back-off, before markers are sent again."""
        if self.backoff_ms < LONGEST_BACKOFF_MS <= self.backoff_ms * 2:
            topic, index = next(iter(self.missing))
            log.warning(
                "the transaction of %s is decided, and %d partitions (%s-%d) have no marker yet; they are tried again",
                self.markers.transactional_id,
                len(self.missing),
                topic,
                index,
            )
        self.backoff_ms = min(self.backoff_ms * 2, LONGEST_BACKOFF_MS)
