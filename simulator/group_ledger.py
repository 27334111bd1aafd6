"""What members of classic groups have learned, and which answers that rules out.

- In one generation a partition is assigned to one member only. A static member that rejoins under another member id is
  the same member.
- A generation in which a member got an assignment never goes back: later requests are in that one or a later one, and a
  request that names an earlier one is refused. (A generation without assignments is not written to the log, so its
  number may be used again after a crash. A coordinator that was deposed and does not know it may still be in an earlier
  one, in which it cannot write an assignment.)
- The assignment is that of the leader, from one of its attempts.
- Every request of a static member that was replaced is refused.

`Standing` is for the end of a run: which live members are stable in one generation.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.ledger import Counts
from simulator.ticks import Ticks
from simulator.violation import Violation

ONE_OWNER = "a partition has one owner in a generation"
NEVER_BACK = "a generation never goes back"
AS_MADE = "an assignment is handed out as the leader made it"

UUID_CHARACTERS = 36

Owned = tuple[tuple[str, int], ...]
"""Topics and partitions, sorted."""


@dataclass(slots=True, eq=False)
class MemberBook:
    """A member, known by its member id."""

    member_id: str
    identity: str
    """Its instance id, if it is static; else its member id."""
    joined_tick: int
    replaced: bool = False

    def __repr__(self) -> str:
        return self.member_id

    def share_of(self, assignment: Mapping[str, Owned]) -> Owned:
        """Its assignment, perhaps under an earlier member id: all ids of a static member have the same prefix."""
        own = (self.member_id, f"{self.identity}-")
        return next(
            (owned for name, owned in assignment.items() if name == own[0] or _without_uuid(name) == own[1]), ()
        )


@dataclass(slots=True)
class Generation:
    attempts: list[Mapping[str, Owned]] = field(default_factory=list)
    """The assignments that leaders sent, by member id, as far as they fit what members have received."""
    owners: dict[tuple[str, int], MemberBook] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """A member whose last response says that its generation continues."""

    generation: int
    owned: Owned


class GroupBook:
    def __init__(self, name: str, counts: Counts, ticks: Ticks) -> None:
        self.name = name
        self.assigned = -1
        """The highest generation in which a member got an assignment."""
        self.standing: dict[str, Standing] = {}
        """Clients that are stable, by name."""
        self.came_to_rest = False
        """All members were stable, and the coordinator confirmed it."""
        self._counts = counts
        self._ticks = ticks
        self._generations: dict[int, Generation] = {}
        self._static: dict[str, list[MemberBook]] = {}

    def __repr__(self) -> str:
        return self.name

    # --- Joining

    def joined(
        self, floor: int, asked_tick: int, generation: int, member_id: str, instance_id: str | None
    ) -> MemberBook:
        """A member joined a generation, which must not be earlier than the one known when it sent its request."""
        self._counts.checks += 1
        if generation < floor:
            raise Violation(NEVER_BACK, f"{member_id} joined generation {generation} of {self}, after {floor}")
        member = MemberBook(member_id, instance_id or member_id, self._ticks.next())
        if instance_id is not None:
            for other in self._static.setdefault(instance_id, []):
                if other.member_id == member_id:
                    return other
                # If two requests overlap, it is unknown which member replaced the other.
                other.replaced = other.replaced or other.joined_tick < asked_tick
            self._static[instance_id].append(member)
        return member

    def handed_in(self, generation: int, assignment: Mapping[str, Owned]) -> None:
        self._generation(generation).attempts.append(assignment)

    def told(self, floor: int, generation: int, member: MemberBook, owned: Owned) -> None:
        """A member got its assignment."""
        self.let_in(floor, generation, member, False, "SyncGroup")
        book = self._generation(generation)
        for partition in owned:
            owner = book.owners.setdefault(partition, member)
            if owner.identity != member.identity:
                raise Violation(
                    ONE_OWNER, f"{partition} belongs to {owner} and {member} in generation {generation} of {self}"
                )
        fitting = [attempt for attempt in book.attempts if member.share_of(attempt) == owned]
        if not fitting:
            raise Violation(AS_MADE, f"{member} was assigned {owned} in generation {generation} of {self}")
        book.attempts = fitting
        self._counts.assignments += 1
        self.assigned = max(self.assigned, generation)

    def everything(self, generation: int) -> Owned:
        """All partitions that are assigned in a generation, if everything that is known fits one attempt."""
        attempts = self._generation(generation).attempts
        return sorted_owned(each for owned in attempts[0].values() for each in owned) if attempts else ()

    # --- Afterwards

    def let_in(self, floor: int, generation: int, member: MemberBook, was_replaced: bool, what: str) -> None:
        """A member's request was accepted; `floor` is the generation known when it was sent."""
        self._counts.checks += 1
        if generation < floor:
            raise Violation(NEVER_BACK, f"{what} of {member} in generation {generation} of {self}, after {floor}")
        if was_replaced:
            raise Violation("a static member that was replaced is refused", f"{what} of {member} in {self}")

    def is_stable(self, clients: Sequence[str]) -> bool:
        """Whether all of these are in one generation and together own everything, so that there is no other member."""
        if any(client not in self.standing for client in clients):
            return False
        standing = [self.standing[client] for client in clients]
        generations = {each.generation for each in standing}
        owned = sorted_owned(each for standing in standing for each in standing.owned)
        return len(generations) == 1 and owned == self.everything(standing[0].generation)

    def _generation(self, number: int) -> Generation:
        return self._generations.setdefault(number, Generation())


def _without_uuid(member_id: str) -> str:
    return member_id[:-UUID_CHARACTERS]


def sorted_owned(partitions: Iterable[tuple[str, int]]) -> Owned:
    return tuple(sorted(partitions))
