"""Plans the reset of a group's offsets: the current and the new offset of each partition.

Nothing is changed here; `set_offsets` carries out what `plan_reset` returns. An offset outside of the partition becomes
the nearest one inside, and `Move.wanted` keeps the original.
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
    CURRENT = auto()  # the committed offset; the end, if there is none
    OFFSET = auto()  # one offset for all partitions
    SHIFT = auto()  # a distance from the committed offset, in either direction
    TIME = auto()  # the first record that is not older; the end, if there is none
    GIVEN = auto()  # an offset for each partition


@dataclass(slots=True, frozen=True)
class Goal:
    to: To
    number: int = 0  # the offset, the distance, or the time in ms
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)


class Bounds(NamedTuple):
    first_offset: int
    end_offset: int


class Move(NamedTuple):
    topic_partition: TopicPartition
    before: int | None
    after: int
    bounds: Bounds
    wanted: int  # `after` before it was limited to the bounds

    @property
    def lag(self) -> int:
        """How many records there are from the new offset on."""
        return self.bounds.end_offset - self.after


def plan_reset(
    cluster: Cluster, committed: Offsets, topic_partitions: Sequence[TopicPartition], goal: Goal
) -> Steps[list[Move]]:
    """A move for each of these partitions, which must exist."""
    first = yield from list_offsets(cluster, dict.fromkeys(topic_partitions, EARLIEST))
    end = yield from list_offsets(cluster, dict.fromkeys(topic_partitions, LATEST))
    at = yield from list_offsets(cluster, dict.fromkeys(topic_partitions, goal.number) if goal.to is To.TIME else {})
    return [
        plan_move(
            topic_partition,
            committed[topic_partition].offset if topic_partition in committed else None,
            Bounds(first[topic_partition].offset, end[topic_partition].offset),
            goal,
            at[topic_partition].offset if topic_partition in at else -1,
        )
        for topic_partition in topic_partitions
    ]


def plan_move(
    topic_partition: TopicPartition, before: int | None, bounds: Bounds, goal: Goal, at_time: int = -1
) -> Move:
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
        wanted = goal.offsets[topic_partition]
    elif before is None:
        raise ClientError(
            f"the group has committed no offset of {topic_partition}, so there is nothing to shift it from"
        )
    else:
        wanted = before + goal.number
    after = min(max(wanted, bounds.first_offset), bounds.end_offset)
    return Move(topic_partition, before, after, bounds, wanted)
