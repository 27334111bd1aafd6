"""Writes many tombstones in steps. A step fits into one append, and other requests run between two steps."""

from collections.abc import Sequence

from quire.coordinators.group.offsets.committed import offset_tombstone
from quire.coordinators.runtime.record import StateRecord

MAX_RECORDS = 1_000
MAX_BYTES = 256 * 1024
_OVERHEAD_BYTES = 48
"""Of a key and its record, without the names."""


class TombstoneStep:
    __slots__ = ("_max_bytes", "_size_bytes", "records")

    def __init__(self, log_takes_bytes: int) -> None:
        """Uses half of what the log takes, to leave room for the last addition and the tombstones of a group."""
        self.records: list[StateRecord] = []
        self._size_bytes = 0
        self._max_bytes = min(MAX_BYTES, log_takes_bytes // 2)

    @property
    def is_full(self) -> bool:
        """Never without a record: a log that takes none refuses that one, and the caller learns that."""
        if not self.records:
            return False
        return len(self.records) >= MAX_RECORDS or self._size_bytes >= self._max_bytes

    def add_group(self, group_id: str, tombstones: Sequence[StateRecord]) -> None:
        """Tombstones of the group itself. They are few, because it has no members."""
        self.records.extend(tombstones)
        self._size_bytes += (4 * len(group_id) + _OVERHEAD_BYTES) * len(tombstones)

    def add(self, group_id: str, topic: str, partition: int) -> None:
        self.records.append(offset_tombstone(group_id, topic, partition))
        self._size_bytes += 4 * len(group_id) + len(topic) + _OVERHEAD_BYTES
