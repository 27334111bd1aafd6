"""Works out where a group's offsets would go: what each partition has now, what it gets, and why not what was asked.

Nothing is changed here; `set_offsets` does that with what `plan_reset` returns. An offset that a partition does not
have becomes the nearest that it has, and the move says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from quire.client.cluster import Cluster
from quire.client.errors import ClientError
from quire.client.group_offsets import Offsets
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.steps import Steps


class To(Enum):
    EARLIEST = auto()
    LATEST = auto()
    CURRENT = auto()  # where it is; the end, for what was never committed
    OFFSET = auto()  # one number for all partitions
    SHIFT = auto()  # so far from where it is, in either direction
    TIME = auto()  # the first record that is not older; the end, if there is none
    GIVEN = auto()  # a number for each partition


@dataclass(slots=True, frozen=True)
class Goal:
    to: To
    number: int = 0  # the offset, the distance, or the time in ms
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)


class Bounds(NamedTuple):
    first_offset: int
    end_offset: int


class Move(NamedTuple):
    place: TopicPartition
    before: int | None
    after: int
    bounds: Bounds
    wanted: int  # what `after` would be if the partition had it

    @property
    def lag(self) -> int:
        """How much there is to read from there on."""
        return self.bounds.end_offset - self.after


def plan_reset(cluster: Cluster, committed: Offsets, places: Sequence[TopicPartition], goal: Goal) -> Steps[list[Move]]:
    """A move for each of these partitions, which exist."""
    first = yield from list_offsets(cluster, dict.fromkeys(places, EARLIEST))
    end = yield from list_offsets(cluster, dict.fromkeys(places, LATEST))
    at = yield from list_offsets(cluster, dict.fromkeys(places, goal.number) if goal.to is To.TIME else {})
    return [
        plan_move(
            place,
            committed[place].offset if place in committed else None,
            Bounds(first[place].offset, end[place].offset),
            goal,
            at[place].offset if place in at else -1,
        )
        for place in places
    ]


def plan_move(place: TopicPartition, before: int | None, bounds: Bounds, goal: Goal, at_time: int = -1) -> Move:
    """`at_time` is the offset of the first record that is not older than the goal's time, -1 if there is none."""
    if goal.to is To.EARLIEST:
        wanted = bounds.first_offset
    elif goal.to is To.LATEST:
        wanted = bounds.end_offset
    elif goal.to is To.CURRENT:
        wanted = bounds.end_offset if before is None else before
    elif goal.to is To.OFFSET:
        wanted = goal.number
    elif goal.to is To.TIME:
        wanted = bounds.end_offset if at_time < 0 else at_time
    elif goal.to is To.GIVEN:
        wanted = goal.offsets[place]
    elif before is None:
        raise ClientError(f"the group has committed no offset of {place}, so there is nothing to shift it from")
    else:
        wanted = before + goal.number
    after = min(max(wanted, bounds.first_offset), bounds.end_offset)
    return Move(place, before, after, bounds, wanted)
