"""Tombstones that are written in steps: as many at once as surely fit into one append, and leave others their turn."""

from collections.abc import Sequence

from quire.coordinators.group.offsets.committed import offset_tombstone
from quire.coordinators.runtime.record import StateRecord

MAX_RECORDS = 1_000
MAX_BYTES = 256 * 1024
_OVERHEAD_BYTES = 48
"""Of a key and the record it is in, besides names."""


class TombstoneStep:
    __slots__ = ("_max_bytes", "_size_bytes", "records")

    def __init__(self, log_takes_bytes: int) -> None:
        """Half of what the log takes leaves room for what is added last, and for the tombstones of a group."""
        self.records: list[StateRecord] = []
        self._size_bytes = 0
        self._max_bytes = min(MAX_BYTES, log_takes_bytes // 2)

    @property
    def is_full(self) -> bool:
        return len(self.records) >= MAX_RECORDS or self._size_bytes >= self._max_bytes

    def add_group(self, group_id: str, tombstones: Sequence[StateRecord]) -> None:
        """Those of a group itself, which has few when it has no members."""
        self.records.extend(tombstones)
        self._size_bytes += (4 * len(group_id) + _OVERHEAD_BYTES) * len(tombstones)

    def add(self, group_id: str, topic: str, partition: int) -> None:
        self.records.append(offset_tombstone(group_id, topic, partition))
        self._size_bytes += 4 * len(group_id) + len(topic) + _OVERHEAD_BYTES
