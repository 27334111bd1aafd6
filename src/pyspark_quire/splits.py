"""Divides the offsets to read into tasks: one for each partition, or more if the options say so.

If there is little to read, a task reads several partitions: starting a task costs more than reading some thousand rows,
and small micro-batches should be fast.

The result depends only on the ranges and the options, never on the cluster: a micro-batch that is planned again after a
crash has the same tasks, which exactly-once sinks rely on.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from quire.client.offsets import TopicPartition

SMALL_OFFSETS = 4096
"""The number of offsets in a task from which a second task is worth its cost."""


class Range(NamedTuple):
    """Offsets of one partition: from `start` up to `end`, which is excluded."""

    topic_partition: TopicPartition
    topic_id: str
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def plan_tasks(
    ranges: Iterable[Range], min_splits: int | None = None, max_records: int | None = None
) -> list[list[Range]]:
    """The ranges of each task. Small splits share a task, unless the options set a minimum number of splits."""
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

    Empty ranges give no split. If there are fewer offsets than `min_splits`, each split has one.
    """
    whole = sorted(part for part in ranges if part.size > 0)
    if max_records is not None:
        whole = [cut for part in whole for cut in _cut(part, -(-part.size // max_records))]
    if min_splits is None or not whole or len(whole) >= min_splits:
        return whole
    return [cut for part, pieces in zip(whole, _shares(whole, min_splits), strict=True) for cut in _cut(part, pieces)]


def _shares(ranges: list[Range], min_splits: int) -> list[int]:
    """The number of pieces of each range: the range with the largest pieces gets one more, until there are enough."""
    total = sum(part.size for part in ranges)
    wanted = min(min_splits, total)
    # Most pieces are assigned in one step, in proportion to size; rounding down never assigns too many.
    spare = wanted - len(ranges)
    pieces = [min(part.size, 1 + part.size * spare // total) for part in ranges]
    while sum(pieces) < wanted:
        largest = max(range(len(ranges)), key=lambda index: (ranges[index].size / pieces[index], -index))
        pieces[largest] += 1
    return pieces


def _cut(part: Range, pieces: int) -> list[Range]:
    edges = [part.start + part.size * index // pieces for index in range(pieces + 1)]
    return [part._replace(start=start, end=end) for start, end in itertools.pairwise(edges)]
