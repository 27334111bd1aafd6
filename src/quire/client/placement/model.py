"""Brokers and partitions as a plan sees them, and the changes that it consists of."""

from dataclasses import dataclass
from typing import NamedTuple


class PlacementError(Exception):
    """There is no such plan. The message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Node:
    """A broker. `free_bytes` is what still fits on its disks; None if that is not known."""

    broker_id: int
    rack: str | None = None
    free_bytes: int | None = None


class Placement(NamedTuple):
    """The replicas of one partition, the preferred leader first. Each takes `size_bytes`."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    size_bytes: int = 0

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


class Change(NamedTuple):
    """What becomes of one partition."""

    before: Placement
    replicas: tuple[int, ...]

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(each for each in self.replicas if each not in self.before.replicas)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(each for each in self.before.replicas if each not in self.replicas)

    @property
    def copied_bytes(self) -> int:
        return self.before.size_bytes * len(self.adding)

    @property
    def moves_leadership(self) -> bool:
        return self.replicas[0] != self.before.replicas[0]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a plan may copy: replicas, and bytes. None is no limit."""

    replicas: int | None = None
    bytes: int | None = None


NO_LIMITS = Limits()
