"""Recognises repeated commands by the ids of the last commands of each partition, within a window.

A command at offset o is a duplicate if a command with its id is at o - WINDOW .. o - 1 of the same partition (commands
are keyed by their id, so both copies are in one partition). This depends on the command topic alone: a new processor
reads this range again, and decides as the previous one would have. A repetition that comes later, or after retention
has removed the first command, is a new command.
"""

from collections import OrderedDict

from quire_samples.inventory.commands import Command
from quire_samples.inventory.events import Source

WINDOW = 100_000


class Seen:
    """The well-formed commands in the window of every partition, refused or not."""

    __slots__ = ("_partitions", "_window")

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._partitions: dict[int, OrderedDict[str, tuple[int, bytes]]] = {}

    def find(self, command_id: str, source: Source) -> tuple[int, bytes] | None:
        """The offset and digest of the last command with this id, if the window still reaches it."""
        ids = self._partitions.get(source.partition)
        found = None if ids is None else ids.get(command_id)
        return found if found is not None and found[0] >= source.offset - self._window else None

    def add(self, command: Command, source: Source) -> None:
        """Offsets of a partition only go up."""
        ids = self._partitions.setdefault(source.partition, OrderedDict())
        ids[command.id] = (source.offset, command.digest)
        ids.move_to_end(command.id)
        while next(iter(ids.values()))[0] < source.offset - self._window:
            ids.popitem(last=False)

    def begin(self, offset: int, first_offset: int) -> int:
        """Where a processor that continues at `offset` must start reading to know the window."""
        return max(first_offset, offset - self._window)

    def __len__(self) -> int:
        return sum(len(ids) for ids in self._partitions.values())
