"""How far reassignments are: bytes that the new replicas have of those that they need, and a bar that shows it."""

import sys
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from quire.cli.partitions.plan_view import duration, size
from quire.client.admin.placements import Sizes, replica_sizes
from quire.client.admin.reassignments import Reassignment, list_reassignments
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.output import count
from quire.console.terminal import echo, rewrite_line
from quire.steps import sleep

_INTERVAL_MS = 1_000.0
_FIRST_MS = 200.0
_LINE_EVERY_S = 10.0
"""Where the output is no terminal."""
_BAR_WIDTH = 30

Moving = Mapping[TopicPartition, Reassignment]
Needed = Mapping[int, int]
"""The bytes that a replica needs, by broker."""


class Progress(NamedTuple):
    copied_bytes: int
    all_bytes: int
    partitions_done: int
    partitions: int

    @property
    def part(self) -> float:
        if self.all_bytes:
            return min(1.0, self.copied_bytes / self.all_bytes)
        return self.partitions_done / self.partitions if self.partitions else 1.0


class Watched:
    """Some reassignments, and what each new replica needs. Those that end at once count as done."""

    def __init__(self, needed: Mapping[TopicPartition, Needed]) -> None:
        """The bytes that each broker needs, by partition."""
        self._needed = needed

    @property
    def partitions(self) -> Collection[TopicPartition]:
        return self._needed.keys()

    def progress(self, moving: Moving, sizes: Sizes) -> Progress:
        """A replica of a partition that has ended has everything, whatever was written to it since."""
        copied = sum(
            needed if where not in moving else min(needed, sizes.get((where, broker), 0))
            for where, brokers in self._needed.items()
            for broker, needed in brokers.items()
        )
        return Progress(
            copied,
            sum(sum(brokers.values()) for brokers in self._needed.values()),
            sum(where not in moving for where in self._needed),
            len(self._needed),
        )


def needed_by(moving: Moving, sizes: Sizes) -> dict[TopicPartition, Needed]:
    """As much as the largest replica has."""
    return {
        where: dict.fromkeys(each.adding, max((sizes.get((where, broker), 0) for broker in each.replicas), default=0))
        for where, each in moving.items()
    }


def find_moving(client: BlockingClient) -> dict[TopicPartition, Reassignment]:
    return client.run(list_reassignments(client.cluster))


def sizes_of(client: BlockingClient, moving: Moving) -> Sizes:
    """On all brokers that are up and have one of these partitions."""
    client.run(client.cluster.refresh([]))
    up = client.cluster.metadata.brokers
    brokers = {broker for each in moving.values() for broker in each.replicas if broker in up}
    return client.run(replica_sizes(client.cluster, sorted(brokers)))


def follow(client: BlockingClient, watched: Watched, tell: Callable[[str], None] | None) -> Progress:
    """Returns when all of them have ended. `tell` gets a line about each step instead of the terminal."""
    clock = client.cluster.clock
    began_ms = clock.monotonic_ms()
    shown = _Bar() if tell is None else None
    pause_ms = _FIRST_MS
    while True:
        client.run(sleep(clock, pause_ms))
        pause_ms = min(_INTERVAL_MS, pause_ms * 2)
        left = {where: each for where, each in find_moving(client).items() if where in watched.partitions}
        progress = watched.progress(left, sizes_of(client, left) if left else {})
        elapsed_s = (clock.monotonic_ms() - began_ms) / 1000
        if tell is not None:
            tell(line(progress, elapsed_s))
        elif shown is not None:
            shown.show(progress, elapsed_s, is_last=not left)
        if not left:
            return progress


class _Bar:
    def __init__(self) -> None:
        self._width = 0
        self._told_s = 0.0

    def show(self, progress: Progress, elapsed_s: float, *, is_last: bool) -> None:
        text = line(progress, elapsed_s)
        if sys.stderr.isatty():
            rewrite_line(f"{bar(progress.part)} {text}".ljust(self._width), err=True, nl=is_last)
            self._width = len(text) + _BAR_WIDTH + 3
        elif is_last or elapsed_s - self._told_s >= _LINE_EVERY_S:
            self._told_s = elapsed_s
            echo(text, err=True)


def bar(part: float) -> str:
    filled = int(part * _BAR_WIDTH)
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}]"


def line(progress: Progress, elapsed_s: float) -> str:
    words = [
        f"{progress.part:.0%}",
        f"{progress.partitions_done:,} of {count(progress.partitions, 'partition')} done",
        f"{size(progress.copied_bytes)} of {size(progress.all_bytes)}",
    ]
    rate = progress.copied_bytes / elapsed_s if elapsed_s else 0.0
    if rate and progress.part < 1:
        left_s = (progress.all_bytes - progress.copied_bytes) / rate
        words.append(f"{size(rate)}/s, about {duration(left_s)} left")
    return ", ".join(words)
