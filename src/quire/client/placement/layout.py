"""Where all replicas are while a plan is made. Partitions have numbers, in the order in which they were given."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from quire.client.placement.model import NO_LIMITS, Change, Limits, Node, Placement


class Layout:
    def __init__(
        self,
        nodes: Iterable[Node],
        partitions: Sequence[Placement],
        targets: Iterable[int],
        limits: Limits = NO_LIMITS,
    ) -> None:
        """Only `targets` get replicas and leaderships, and only among them is balanced."""
        self.before = partitions
        self.targets = sorted(targets)
        self.replicas = [list(each.replicas) for each in partitions]
        self.held: dict[int, dict[int, None]] = defaultdict(dict)
        """The partitions of each broker."""
        self.bytes: dict[int, int] = defaultdict(int)
        self.led: dict[int, int] = defaultdict(int)
        """How many partitions have the broker as their first replica."""
        self.of_topic: dict[tuple[int, str], int] = defaultdict(int)
        """How many partitions of a topic a broker has."""
        self.copied_replicas = 0
        self.copied_bytes = 0
        self._limits = limits
        self._racks = {each.broker_id: each.rack or "" for each in nodes}
        self._free = {each.broker_id: each.free_bytes for each in nodes}
        self._rack_count = len({self._racks[each] for each in self.targets})
        for number, each in enumerate(partitions):
            for broker in each.replicas:
                self._hold(number, broker)
            if each.replicas:
                self.led[each.replicas[0]] += 1

    def size(self, number: int) -> int:
        return self.before[number].size_bytes

    def count(self, broker: int) -> int:
        return len(self.held[broker])

    def changes(self) -> list[Change]:
        return [
            Change(before, tuple(replicas))
            for before, replicas in zip(self.before, self.replicas, strict=True)
            if before.replicas != tuple(replicas)
        ]

    # --- What is possible

    def fits(self, number: int, broker: int) -> bool:
        """Whether the disks of the broker have room for this replica; those that it had before are there already."""
        free = self._free.get(broker)
        return free is None or broker in self.before[number].replicas or self.size(number) <= free

    def within_limits(self, *additions: tuple[int, int]) -> bool:
        """Whether these replicas, as (partition, broker), may be copied too."""
        copies = [number for number, broker in additions if broker not in self.before[number].replicas]
        replicas, size_bytes = self._limits.replicas, self._limits.bytes
        return (replicas is None or self.copied_replicas + len(copies) <= replicas) and (
            size_bytes is None or self.copied_bytes + sum(map(self.size, copies)) <= size_bytes
        )

    def can_move(self, number: int, source: int, target: int) -> bool:
        """Without two replicas on one broker, more of them in one rack than now, or more bytes than fit."""
        if target in self.replicas[number] or not self.fits(number, target):
            return False
        if self.rack(source) == self._racks[target]:
            return True
        return self.missing_racks(number, source, target) <= self.missing_racks(number)

    def missing_racks(self, number: int, source: int | None = None, target: int | None = None) -> int:
        """How many racks more the replicas could be in; also as if one replica had moved."""
        replicas = self.replicas[number]
        used = {self._racks.get(each, "") for each in replicas if each != source}
        if target is not None:
            used.add(self._racks[target])
        return max(0, min(len(replicas), self._rack_count) - len(used))

    def rack(self, broker: int) -> str:
        return self._racks.get(broker, "")

    # --- Changes

    def move(self, number: int, source: int, target: int) -> None:
        """The new replica takes the place of the old one, also that of the first."""
        replicas = self.replicas[number]
        position = replicas.index(source)
        replicas[position] = target
        if position == 0:
            self.led[source] -= 1
            self.led[target] += 1
        self._release(number, source)
        self._take(number, target)

    def add(self, number: int, broker: int) -> None:
        replicas = self.replicas[number]
        replicas.append(broker)
        if len(replicas) == 1:
            self.led[broker] += 1
        self._take(number, broker)

    def remove(self, number: int, broker: int) -> None:
        replicas = self.replicas[number]
        if replicas[0] == broker:
            self.led[broker] -= 1
            if len(replicas) > 1:
                self.led[replicas[1]] += 1
        replicas.remove(broker)
        self._release(number, broker)

    def lead(self, number: int, broker: int) -> None:
        """Makes the broker's replica the first one."""
        replicas = self.replicas[number]
        self.led[replicas[0]] -= 1
        self.led[broker] += 1
        position = replicas.index(broker)
        replicas[0], replicas[position] = broker, replicas[0]

    def _take(self, number: int, broker: int) -> None:
        self._hold(number, broker)
        self._count_copy(number, broker, 1)

    def _release(self, number: int, broker: int) -> None:
        del self.held[broker][number]
        self.bytes[broker] -= self.size(number)
        self.of_topic[broker, self.before[number].topic] -= 1
        self._count_copy(number, broker, -1)

    def _hold(self, number: int, broker: int) -> None:
        self.held[broker][number] = None
        self.bytes[broker] += self.size(number)
        self.of_topic[broker, self.before[number].topic] += 1

    def _count_copy(self, number: int, broker: int, change: int) -> None:
        if broker in self.before[number].replicas:
            return
        size = self.size(number)
        self.copied_replicas += change
        self.copied_bytes += change * size
        free = self._free.get(broker)
        if free is not None:
            self._free[broker] = free - change * size
