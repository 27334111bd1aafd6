"""The position of a stream: an offset and the topic's id for each partition, as Spark keeps them in a checkpoint.

    {"orders": {"id": "kbe4...", "offsets": {"0": 5, "1": 7}, "begins": {"1": 3}, "gone": [0]}}

Spark compares positions by their JSON, so it is written in one order only. `begins` has the partitions that this
micro-batch does not read from the end of the one before: new ones, those with lost records, and all of them in the
first micro-batch, for which Spark keeps no start. With it, start and end alone determine what a micro-batch reads, also
when it is repeated after a crash. `gone` are deleted partitions, if the user accepts their loss: if the topic exists
again, the position and the id of the old one are known.
"""

from typing import Any, NamedTuple

from pyspark_quire.errors import QuireError
from pyspark_quire.splits import Range
from quire.client.offsets import TopicPartition


class Position(NamedTuple):
    """`offset` is the next one to be read; `begin` is where this micro-batch starts, if not at the previous end."""

    offset: int
    topic_id: str
    begin: int | None = None
    gone: bool = False


Positions = dict[TopicPartition, Position]


def to_json(positions: Positions) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (topic, partition), (offset, topic_id, begin, gone) in sorted(positions.items()):
        part = found.setdefault(topic, {"id": topic_id, "offsets": {}})
        part["offsets"][str(partition)] = offset
        if begin is not None:
            part.setdefault("begins", {})[str(partition)] = begin
        if gone:
            part.setdefault("gone", []).append(partition)
    return found


def from_json(found: Any) -> Positions:
    positions: Positions = {}
    try:
        for topic, part in found.items():
            begins, gone = part.get("begins", {}), part.get("gone", [])
            for partition, offset in part["offsets"].items():
                topic_partition = TopicPartition(topic, int(partition))
                positions[topic_partition] = Position(
                    int(offset), part["id"], begins.get(partition), int(partition) in gone
                )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise QuireError(
            f"the checkpoint has {found!r} where offsets of format quire should be; it is from another source"
        ) from None
    return positions


def begin_of(partition: TopicPartition, start: Positions, end: Position) -> int:
    """Where the micro-batch that ends at `end` begins to read a partition."""
    if end.begin is not None:
        return end.begin
    before = start.get(partition)
    if before is None or before.topic_id != end.topic_id:
        return 0
    return before.offset


def ranges_between(start: Positions, end: Positions) -> list[Range]:
    """What the micro-batch from `start` to `end` reads."""
    found: list[Range] = []
    for partition, position in sorted(end.items()):
        begin = begin_of(partition, start, position)
        if begin > position.offset:
            raise QuireError(
                f"{partition} would be read from offset {begin} to {position.offset}: the start is after the end, "
                "so start and end are from different streams"
            )
        found.append(Range(partition, position.topic_id, begin, position.offset))
    return found


def without_begins(positions: Positions) -> Positions:
    return {partition: position._replace(begin=None) for partition, position in positions.items()}
