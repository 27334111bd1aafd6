"""What members of consumer groups (KIP-848) have learned, and which answers that rules out.

- A partition has one owner: no member is assigned a partition while another member owns it, which has not revoked it
  and whose heartbeats arrive. A member that is silent for too long, or takes too long to revoke a partition, is removed
  from the group, perhaps without knowing it yet: its partitions are free.
- The epoch of a member never goes back, unless it joins again.
- A member is assigned only what it subscribes to.

`Standing` is for the end of a run: the live members together own everything, in one epoch.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from simulator.ledger import Counts, PartitionBook
from simulator.ticks import Ticks
from simulator.violation import Violation

ONE_OWNER = "a partition has one owner at a time"
SUBSCRIBED = "no member gets what it did not subscribe to"
NEVER_BACK = "the epoch of a member never goes back"


@dataclass(slots=True, eq=False)
class ConsumerMemberBook:
    """One member, from joining to leaving."""

    member_id: str
    is_heard: Callable[[], bool]
    """Whether the coordinator must still know it."""
    epoch: int = 0
    held: dict[PartitionBook, int] = field(default_factory=dict)
    """What it owns, and when it learned that."""

    def __repr__(self) -> str:
        return f"{self.member_id} in epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class Standing:
    """A member whose assignment is complete."""

    epoch: int
    owned: frozenset[PartitionBook]
    wanted: frozenset[str]
    """The topics that it subscribes to."""


class ConsumerGroupBook:
    def __init__(self, name: str, counts: Counts, ticks: Ticks) -> None:
        self.name = name
        self.standing: dict[str, Standing] = {}
        self.came_to_rest = False
        """All members were stable, and the coordinator confirmed it."""
        self._counts = counts
        self._ticks = ticks
        self._members: list[ConsumerMemberBook] = []

    def __repr__(self) -> str:
        return self.name

    def joins(self, member: ConsumerMemberBook) -> None:
        self._members.append(member)

    def leaves(self, member: ConsumerMemberBook) -> None:
        """The member has left, or knows that it was removed: it no longer owns anything."""
        member.held.clear()
        if member in self._members:
            self._members.remove(member)

    def told_epoch(self, member: ConsumerMemberBook, floor: int, epoch: int) -> None:
        self._counts.checks += 1
        if epoch < floor:
            raise Violation(NEVER_BACK, f"{member} of {self} got epoch {epoch}, after {floor}")
        member.epoch = epoch

    def told_topics(
        self,
        member: ConsumerMemberBook,
        told: frozenset[PartitionBook],
        topics: Collection[str],
        late_report: frozenset[PartitionBook] | None,
    ) -> None:
        """A member got this assignment. `late_report` is what it reported, if it did not know its epoch yet.

        Then it must be told of partitions of an earlier subscription if it would not report again without them: it does
        that only when its assignment is another one than it reported.
        """
        self._counts.checks += 1
        wanted = frozenset(partition for partition in told if partition.topic.name in topics)
        if wanted not in (told, late_report):
            raise Violation(SUBSCRIBED, f"{member} of {self} got {sorted(told - wanted, key=repr)}")

    def told_to_own(self, member: ConsumerMemberBook, asked_tick: int, partitions: Iterable[PartitionBook]) -> None:
        """A member got these partitions, with a request that it sent at `asked_tick`."""
        tick = self._ticks.next()
        for partition in partitions:
            self._counts.checks += 1
            for other in self._members:
                told_tick = other.held.get(partition)
                if other is member or told_tick is None or told_tick > asked_tick:
                    continue
                if other.is_heard():
                    raise Violation(ONE_OWNER, f"{partition} of {self} belongs to {other} and to {member}")
            member.held.setdefault(partition, tick)
        self._counts.assignments += 1

    def is_stable(self, clients: Sequence[str], partitions: Sequence[PartitionBook]) -> bool:
        """Whether all of these are in one epoch, and together own every partition that they subscribe to."""
        if any(client not in self.standing for client in clients):
            return False
        standing = [self.standing[client] for client in clients]
        wanted = {name for each in standing for name in each.wanted}
        expected = [book for book in partitions if book.topic.name in wanted]
        owned = [book for each in standing for book in partitions if book in each.owned]
        is_complete = len(owned) == len(expected) and set(owned) == set(expected)
        return is_complete and len({each.epoch for each in standing}) == 1
