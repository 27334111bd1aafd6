"""How the offsets to be read become tasks: one for each partition, more where the options ask for it.

Where little is to be read, a task takes several partitions: it costs Spark more to start one than to read some
thousand rows, and a stream is to be quick when little happens.

The result depends on the ranges and the options alone, never on the cluster or on how often it is asked: a micro-batch
that is planned again after a crash has the same tasks, which is what exactly-once sinks compare.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from quire.client.offsets import TopicPartition

SMALL_OFFSETS = 4096
"""What a task has to have before a second one is worth it."""


class Range(NamedTuple):
    """Offsets of one partition: from `start` up to `end`, which is not among them."""

    place: TopicPartition
    topic_id: str
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def plan_tasks(
    ranges: Iterable[Range], min_splits: int | None = None, max_records: int | None = None
) -> list[list[Range]]:
    """What each task reads. Small splits go together, unless the options say how many there shall be at least."""
    tasks: list[list[Range]] = []
    size = 0
    for cut in split_ranges(ranges, min_splits, max_records):
        size += cut.size
        if not tasks or min_splits is not None or size > min(SMALL_OFFSETS, max_records or SMALL_OFFSETS):
            tasks.append([])
            size = cut.size
        tasks[-1].append(cut)
    return tasks


def split_ranges(ranges: Iterable[Range], min_splits: int | None = None, max_records: int | None = None) -> list[Range]:
    """The ranges in order, cut so that none spans more than `max_records` offsets and there are `min_splits` of them.

    Empty ranges give no split. Where there are fewer offsets than `min_splits`, each split has one.
    """
    whole = sorted(part for part in ranges if part.size > 0)
    if max_records is not None:
        whole = [cut for part in whole for cut in _cut(part, -(-part.size // max_records))]
    if min_splits is None or not whole or len(whole) >= min_splits:
        return whole
    return [cut for part, pieces in zip(whole, _shares(whole, min_splits), strict=True) for cut in _cut(part, pieces)]


def _shares(ranges: list[Range], min_splits: int) -> list[int]:
    """How many pieces of each range: always one more of that whose pieces are largest, until there are enough."""
    total = sum(part.size for part in ranges)
    wanted = min(min_splits, total)
    # Most of the way in one step: what is handed out by size beyond one for each can never be too much.
    spare = wanted - len(ranges)
    pieces = [min(part.size, 1 + part.size * spare // total) for part in ranges]
    while sum(pieces) < wanted:
        largest = max(range(len(ranges)), key=lambda index: (ranges[index].size / pieces[index], -index))
        pieces[largest] += 1
    return pieces


def _cut(part: Range, pieces: int) -> list[Range]:
    edges = [part.start + part.size * index // pieces for index in range(pieces + 1)]
    return [part._replace(start=start, end=end) for start, end in itertools.pairwise(edges)]
