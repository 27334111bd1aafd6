"""What members of groups were told, and what that forbids.

- In one generation a partition is handed to one member only. A static member that comes back under another id is the
  same member.
- A generation that anybody was assigned something in never goes back: who asks later is in that one, or in a later one;
  who still speaks of an earlier one is told so, and changes nothing. (A generation in which nobody was assigned
  anything yet is not written down: after a crash its number is given again.)
- An assignment is handed out as the leader made it: all of it from one of its attempts.
- A static member that was replaced is let in nowhere.

`Standing` is for the end of a run: which members that live, and are heard of, have come to rest in one generation.
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
    """Somebody who was given a member id."""

    member_id: str
    identity: str
    """Its instance id, if it is static; else its member id."""
    joined_tick: int
    replaced: bool = False

    def __repr__(self) -> str:
        return self.member_id

    def share_of(self, assignment: Mapping[str, Owned]) -> Owned:
        """What is meant for it, perhaps under an id that it had before: those of a static member begin alike."""
        own = (self.member_id, f"{self.identity}-")
        return next(
            (owned for name, owned in assignment.items() if name == own[0] or _without_uuid(name) == own[1]), ()
        )


@dataclass(slots=True)
class Generation:
    attempts: list[Mapping[str, Owned]] = field(default_factory=list)
    """What leaders handed in, by member id; those that fit what members were told so far."""
    owners: dict[tuple[str, int], MemberBook] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """A member that was told, last of all, that its generation goes on."""

    generation: int
    owned: Owned


class GroupBook:
    def __init__(self, name: str, counts: Counts, ticks: Ticks) -> None:
        self.name = name
        self.assigned = -1
        """The highest generation that anybody was assigned something in."""
        self.standing: dict[str, Standing] = {}
        """Clients that have nothing to complain about."""
        self.came_to_rest = False
        """Everybody was there, and the coordinator said so too."""
        self._counts = counts
        self._ticks = ticks
        self._generations: dict[int, Generation] = {}
        self._static: dict[str, list[MemberBook]] = {}

    def __repr__(self) -> str:
        return self.name

    # Joining

    def joined(
        self, floor: int, asked_tick: int, generation: int, member_id: str, instance_id: str | None
    ) -> MemberBook:
        """Somebody is in a generation, which must be no earlier than the one that was known when it asked."""
        self._counts.checks += 1
        if generation < floor:
            raise Violation(NEVER_BACK, f"{member_id} joined generation {generation} of {self}, after {floor}")
        member = MemberBook(member_id, instance_id or member_id, self._ticks.next())
        if instance_id is not None:
            for other in self._static.setdefault(instance_id, []):
                if other.member_id == member_id:
                    return other
                # Of two that asked at the same time nobody knows who replaced whom.
                other.replaced = other.replaced or other.joined_tick < asked_tick
            self._static[instance_id].append(member)
        return member

    def handed_in(self, generation: int, assignment: Mapping[str, Owned]) -> None:
        self._generation(generation).attempts.append(assignment)

    def told(self, floor: int, generation: int, member: MemberBook, owned: Owned) -> None:
        """A member was told what it owns."""
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
            raise Violation(AS_MADE, f"{member} was told to own {owned} in generation {generation} of {self}")
        book.attempts = fitting
        self._counts.assignments += 1
        self.assigned = max(self.assigned, generation)

    def everything(self, generation: int) -> Owned:
        """What there is to be owned in a generation, if all that is known fits one attempt."""
        attempts = self._generation(generation).attempts
        return sorted_owned(each for owned in attempts[0].values() for each in owned) if attempts else ()

    # Afterwards

    def let_in(self, floor: int, generation: int, member: MemberBook, was_replaced: bool, what: str) -> None:
        """A member's request was accepted; `floor` is the generation known when it was sent."""
        self._counts.checks += 1
        if generation < floor:
            raise Violation(NEVER_BACK, f"{what} of {member} in generation {generation} of {self}, after {floor}")
        if was_replaced:
            raise Violation("a static member that was replaced is let in nowhere", f"{what} of {member} in {self}")

    def is_stable(self, clients: Sequence[str]) -> bool:
        """Whether all of these are in one generation, and own everything between them: nobody else is there."""
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
