"""Plans the end of a stream's next micro-batch. Pure: its input is what the cluster has reported.

`available` finds new records and lost ones; `limited` takes a part, if there is a limit.
"""

from collections.abc import Mapping

from pyspark_quire.bounds import Bounds
from pyspark_quire.loss import LossPolicy
from pyspark_quire.positions import Position, Positions, begin_of, without_begins
from pyspark_quire.subscription import Partitions
from quire.client.offsets import TopicPartition


def available(
    start: Positions, partitions: Partitions, extent: Mapping[TopicPartition, Bounds], loss: LossPolicy
) -> Positions:
    """The current end of every partition. New partitions and topics are read from their beginning.

    Missing records are reported to `loss`; if it accepts them, reading continues with the existing ones. The position
    in a deleted topic is kept: if a topic of that name exists again, its id shows whether it is the same.
    """
    ids = {partition.topic: topic_id for partition, topic_id in partitions.items()}
    gone: Positions = {}
    for partition, before in start.items():
        if partition not in partitions:
            if not before.gone:
                loss.deleted(partition, before.offset)
            if ids.get(partition.topic, before.topic_id) == before.topic_id:
                gone[partition] = before._replace(begin=None, gone=True)
    topics = {partition.topic: before.topic_id for partition, before in start.items()}
    there = {
        partition: Position(
            extent[partition].latest, topic_id, _begin(partition, topic_id, start, topics, extent[partition], loss)
        )
        for partition, topic_id in partitions.items()
    }
    return dict(sorted((gone | there).items()))


def _begin(
    partition: TopicPartition,
    topic_id: str,
    start: Positions,
    topics: Mapping[str, str],
    bounds: Bounds,
    loss: LossPolicy,
) -> int | None:
    """Where to start, if not where the last micro-batch ended."""
    before = start.get(partition)
    if before is None:
        if topics.get(partition.topic) == topic_id and bounds.earliest > 0:
            loss.overtaken(partition, 0, bounds.earliest)  # a new partition has lost its first records already
        return bounds.earliest
    if before.topic_id != topic_id:
        if not before.gone:
            loss.recreated(partition, before.offset, before.topic_id, topic_id)
        return bounds.earliest
    if before.offset < bounds.earliest:
        loss.overtaken(partition, before.offset, bounds.earliest)
        return bounds.earliest
    if before.offset > bounds.latest:
        loss.beyond(partition, before.offset, bounds.latest)
        return bounds.latest
    return None


def capped(start: Positions, end: Positions, target: Positions) -> Positions:
    """Not beyond `target`, the fixed end of a stream that stops by itself; never before `start`."""
    found: Positions = {}
    for partition, position in end.items():
        limit = target.get(partition)
        begin = begin_of(partition, start, position)
        if limit is not None and limit.topic_id == position.topic_id:
            found[partition] = position._replace(offset=max(begin, min(position.offset, limit.offset)))
        elif partition in start:
            found[partition] = position._replace(offset=begin)
    return found


def count_new(start: Positions, end: Positions) -> int:
    """The number of offsets between the two."""
    return sum(position.offset - begin_of(partition, start, position) for partition, position in end.items())


def limited(start: Positions, end: Positions, max_offsets: int) -> Positions:
    """At most this many offsets, divided in proportion; one at least for each partition that has any, if possible."""
    begins = {partition: begin_of(partition, start, position) for partition, position in end.items()}
    sizes = {partition: position.offset - begins[partition] for partition, position in end.items()}
    if sum(sizes.values()) <= max_offsets:
        return end
    shares = _shares(sizes, max_offsets)
    return {
        partition: position._replace(offset=begins[partition] + shares[partition])
        for partition, position in end.items()
    }


def _shares(sizes: Mapping[TopicPartition, int], max_offsets: int) -> dict[TopicPartition, int]:
    """Divides fewer offsets than exist: one per partition that has any, the rest in proportion, then the remainder."""
    not_empty = (partition for partition in sizes if sizes[partition])
    largest_first = sorted(not_empty, key=lambda partition: (-sizes[partition], partition))
    shares = dict.fromkeys(sizes, 0) | dict.fromkeys(largest_first[:max_offsets], 1)
    left = max_offsets - sum(shares.values())
    beyond = {partition: sizes[partition] - shares[partition] for partition in largest_first}
    total = sum(beyond.values())
    for partition in largest_first:
        shares[partition] += beyond[partition] * left // total
    left = max_offsets - sum(shares.values())
    for partition in largest_first:
        if left and shares[partition] < sizes[partition]:
            shares[partition] += 1
            left -= 1
    return shares


def with_begins(start: Positions, end: Positions) -> Positions:
    """The same end, with the start of each partition included."""
    return {
        partition: position._replace(begin=begin_of(partition, start, position)) for partition, position in end.items()
    }


def moved(start: Positions, end: Positions) -> bool:
    """Whether there is anything to read between the two."""
    return without_begins(start) != without_begins(end)
