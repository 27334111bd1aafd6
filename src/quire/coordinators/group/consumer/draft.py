"""What an operation wants written, and the group as it will be then.

An operation changes nothing itself: it writes records into a draft, which applies them to a copy of the group at once,
so that every later step sees the group as the earlier ones left it. When the operation ends, or is refused, the draft
is thrown away; the records go through the log and change the group in the same way.
"""

from collections.abc import Iterable

from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.freshness import Freshness
from quire.coordinators.runtime.record import StateRecord


class Draft:
    __slots__ = ("_is_copy", "freshness", "group", "records")

    def __init__(self, group: ConsumerGroup, before: Iterable[StateRecord] = ()) -> None:
        """`before` are records of another kind that have to be written first."""
        self.group = group
        self.records = list(before)
        self.freshness: Freshness | None = None
        """What the operation has looked at, if it did: known once the operation is not refused."""
        self._is_copy = False

    def write(self, *records: StateRecord) -> None:
        if not self._is_copy:
            # Most heartbeats of a group in motion write nothing: only now is a copy needed.
            self.group = self.group.copy()
            self._is_copy = True
        for record in records:
            self.records.append(record)
            self.group.apply(record)
