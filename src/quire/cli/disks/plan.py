"""Which replicas of a broker move to which directory. Everything that can be wrong is found before anything moves."""

from collections.abc import Sequence
from typing import NamedTuple

from quire.client.admin.cluster import LogDir, ReplicaSize
from quire.client.offsets import TopicPartition
from quire.console.failure import EXIT_NOT_FOUND, Failure

RESERVE = 0.05
"""The part of a disk that stays free."""


class Plan(NamedTuple):
    broker: int
    target: str
    replicas: tuple[ReplicaSize, ...]
    """Those that are elsewhere, with the bytes that are to be copied."""

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.replicas)

    def seconds(self, bytes_per_second: int | None) -> float | None:
        """How long it takes at least; None if the rate is not limited."""
        return None if bytes_per_second is None else self.size_bytes / bytes_per_second


def make_plan(
    broker: int, directories: Sequence[LogDir], wanted: Sequence[TopicPartition], source: str | None, target: str
) -> Plan:
    """A Failure says what is wrong. Replicas that are in the target already are left out."""
    to = _directory(broker, directories, target)
    if to.error is not None:
        raise Failure(f"{to.path} on broker {broker} is offline: repair its disk, or choose another directory.")
    held = {
        TopicPartition(each.topic, each.partition): (directory, each)
        for directory in directories
        for each in directory.replicas
        if not each.is_future
    }
    if source is not None:
        origin = _directory(broker, directories, source)
        if origin.error is not None:
            raise Failure(f"{origin.path} on broker {broker} is offline: what is in it cannot be read.")
        if origin is to:
            raise Failure(f"--from and --to are both {to.path}.")
        wanted = [name for name, (directory, _) in held.items() if directory is origin]
    for name in wanted:
        if name not in held:
            raise Failure(f"broker {broker} has no replica of {name.topic}-{name.partition}.", EXIT_NOT_FOUND)
    replicas = tuple(held[name][1] for name in dict.fromkeys(wanted) if held[name][0] is not to)
    plan = Plan(broker, to.path, replicas)
    copied = sum(each.size_bytes for each in to.replicas if each.is_future)
    room = to.usable_bytes - int(to.total_bytes * RESERVE)
    if to.total_bytes >= 0 and plan.size_bytes - copied > room:
        raise Failure(
            f"{to.path} on broker {broker} has {size_text(max(room, 0))} to spare, and {size_text(plan.size_bytes)} "
            "are to move there: move fewer replicas, or make room."
        )
    return plan


def _directory(broker: int, directories: Sequence[LogDir], path: str) -> LogDir:
    for directory in directories:
        if directory.path.rstrip("/") == path.rstrip("/"):
            return directory
    known = ", ".join(each.path for each in directories)
    raise Failure(f"broker {broker} has no data directory {path}; it has {known}.", EXIT_NOT_FOUND)


def size_text(size_bytes: float) -> str:
    """As `1.5 GiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size_bytes < 1024 or unit == "GiB":
            break
        size_bytes /= 1024
    return f"{size_bytes:.0f} {unit}" if unit == "bytes" else f"{size_bytes:.1f} {unit}"
