"""Finds a replica to move from one broker to another, of about the size that is wanted.

For each pair of brokers it keeps the partitions that may move, by size. A partition that cannot move is dropped from a
list when it is met, and put back when one of its replicas has moved: it may be possible then. So each search looks at
few partitions, although replicas move all the time.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

from quire.client.placement.layout import Layout

_COMPARED = 16
"""Replicas of about the same size: of these, the best for the spread of the topics is taken."""

Entry = tuple[int, int]
"""The size of a partition, and its number."""


class Candidates:
    """Replicas are moved with `move`, so that the lists stay complete."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lists: dict[tuple[int, int], list[Entry]] = {}

    def move(self, number: int, source: int, target: int) -> None:
        layout = self._layout
        layout.move(number, source, target)
        entry = layout.size(number), number
        for holder in layout.replicas[number]:
            for broker in layout.targets:
                entries = self._lists.get((holder, broker))
                if entries is not None and layout.can_move(number, holder, broker):
                    position = bisect_left(entries, entry)
                    if position == len(entries) or entries[position] != entry:
                        insort(entries, entry)

    def find(self, source: int, target: int, size_bytes: float) -> int | None:
        """The partition whose replica should move, or None if none can."""
        layout = self._layout

        def cost(entry: Entry) -> tuple[float, int, bool, int]:
            size, number = entry
            topic = layout.before[number].topic
            spread = layout.of_topic[target, topic] - layout.of_topic[source, topic]
            leads = layout.replicas[number][0] == source
            helps_leaders = leads == (layout.led[source] > layout.led[target])
            return abs(size - size_bytes), spread, not helps_leaders, number

        near = self.near(source, target, size_bytes, _COMPARED)
        allowed = [each for each in near if layout.within_limits((each[1], target))]
        return min(allowed, key=cost)[1] if allowed else None

    def near(self, source: int, target: int, size_bytes: float, count: int) -> list[Entry]:
        """Replicas that can move: the nearest few that are smaller, and those that are not."""
        entries = self._entries(source, target)
        position = bisect_left(entries, (size_bytes, -1))
        found = list(self._upwards(entries, position, source, target, count))
        position -= 1
        below = 0
        while position >= 0 and below < count:
            if self._can_move(entries[position], source, target):
                found.append(entries[position])
                below += 1
            else:
                del entries[position]
            position -= 1
        return found

    def smallest(self, source: int, target: int, count: int) -> list[Entry]:
        return list(self._upwards(self._entries(source, target), 0, source, target, count))

    def _upwards(self, entries: list[Entry], position: int, source: int, target: int, count: int) -> Iterator[Entry]:
        while position < len(entries) and count:
            if self._can_move(entries[position], source, target):
                yield entries[position]
                position += 1
                count -= 1
            else:
                del entries[position]

    def _entries(self, source: int, target: int) -> list[Entry]:
        entries = self._lists.get((source, target))
        if entries is None:
            entries = sorted((self._layout.size(number), number) for number in self._layout.held[source])
            self._lists[source, target] = entries
        return entries

    def _can_move(self, entry: Entry, source: int, target: int) -> bool:
        number = entry[1]
        return number in self._layout.held[source] and self._layout.can_move(number, source, target)
