"""A `ResultBuilder` that shows the group as its records will leave it.

An operation on a consumer group changes nothing itself. It writes records into the builder, which applies them to a
copy of the group, so that later steps of the operation see the changes of earlier ones. After the operation the copy is
thrown away. The runtime replays the records, and that changes the group.
"""

from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.freshness import Freshness
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result_builder import ResultBuilder


class ConsumerResultBuilder(ResultBuilder):
    __slots__ = ("_is_copy", "freshness", "group")

    def __init__(self, group: ConsumerGroup) -> None:
        super().__init__()
        self.group = group
        self.freshness: Freshness | None = None
        """The topics that the operation has looked at. Kept only if the operation succeeds."""
        self._is_copy = False

    def write(self, *records: StateRecord) -> None:
        if not self._is_copy:
            # Most heartbeats during a rebalance write nothing, so the copy is made only here.
            self.group = self.group.copy()
            self._is_copy = True
        for record in records:
            self.records.append(record)
            self.group.apply(record)

    def write_conversion(self, *records: StateRecord) -> None:
        """Records that replace the classic group by the consumer group, or the reverse. `group` stays as it is."""
        super().write(*records)
