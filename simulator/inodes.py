"""The contents of a disk, twice: as programs see them, and as they would be after a power loss.

A file remembers the writes since its last sync, a folder the names changed since its last sync. `after_power_loss`
decides, with a seed, how much of that had reached the disk. The rules are as harsh as POSIX allows:

- Synced bytes stay, unless a later unsynced write or truncate covered exactly them.
- Of a file's unsynced changes a prefix survives, and the first one lost may be torn at any byte; with `reorder`, every
  512-byte sector is on its own: it holds the state after any one of the changes to it, and so does the file's size.
- Of a folder's unsynced changes a prefix survives. Syncing a file says nothing about its name, and folders say nothing
  about each other.
"""

from collections.abc import Iterator
from typing import TypeAlias

from simulator.random import SimRandom

SECTOR = 512

FileChange: TypeAlias = tuple[int, bytes | None]
"""(position, bytes) is a write; (size, None) a truncate."""

NameChange: TypeAlias = tuple[tuple[str, "FileNode | FolderNode | None"], ...]
"""Names and what they now stand for (None: nothing), all at once or not at all: a rename changes two."""


class FileNode:
    __slots__ = ("_flips", "_lost_sectors", "_platter", "_unsynced", "changes", "content", "modified_ms")

    def __init__(self, content: bytes | bytearray = b"", modified_ms: int = 0) -> None:
        self.content = bytearray(content)
        self.modified_ms = modified_ms
        self.changes = 0
        """How often the content has changed."""
        self._platter = bytearray(content)
        self._unsynced: list[FileChange] = []
        self._lost_sectors: set[int] = set()
        """Those that a failed sync did not write, as long as nothing writes to them again."""
        self._flips: dict[int, int] = {}
        """The positions of bytes that were damaged, with the bits."""

    def flip(self, position: int, bit: int) -> None:
        """A synced bit changes, in memory and on the disk."""
        assert position < len(self._platter) and not self._unsynced, "what was not synced may be lost, not damaged"
        for image in (self.content, self._platter):
            image[position] ^= 1 << bit
        self.changes += 1
        self._flips[position] = self._flips.get(position, 0) ^ 1 << bit

    def as_written(self, start: int = 0) -> bytes:
        """The content without damage. A damaged byte that was overwritten or cut off does not matter any more."""
        if not self._flips:
            return bytes(self.content[start:])
        found = bytearray(self.content)
        for position, bits in self._flips.items():
            found[position] ^= bits
        return bytes(found[start:])

    def write(self, data: bytes, position: int) -> None:
        self.changes += 1
        _apply(self.content, (position, data))
        if self._flips:
            self._flips = {at: bits for at, bits in self._flips.items() if not position <= at < position + len(data)}
        self._unsynced.append(self._with_whole_sectors(position, data))

    def truncate(self, size: int) -> None:
        self.changes += 1
        _apply(self.content, (size, None))
        self._flips = {at: bits for at, bits in self._flips.items() if at < size}
        self._unsynced.append((size, None))

    def sync(self) -> None:
        for change in self._unsynced:
            _apply(self._platter, change)
        self._unsynced.clear()

    def fail_sync(self) -> None:
        """As Linux does after an I/O error: the pages count as clean, stay readable, and no later sync writes them."""
        for change in self._unsynced:
            self._lost_sectors.update(_sectors(change))
        self._unsynced.clear()

    @property
    def is_synced(self) -> bool:
        return not self._unsynced and not self._lost_sectors

    def after_power_loss(self, random: SimRandom, *, reorder: bool) -> "FileNode":
        found = FileNode(self._reordered(random) if reorder else self._torn_prefix(random), self.modified_ms)
        found._flips = {at: bits for at, bits in self._flips.items() if at < len(found.content)}
        return found

    def _with_whole_sectors(self, position: int, data: bytes) -> FileChange:
        """A sector goes to disk as a whole, with what a failed sync left in memory."""
        if not self._lost_sectors:
            return position, data
        lost = [sector for sector in _sectors((position, data)) if sector in self._lost_sectors]
        if not lost:
            return position, data
        self._lost_sectors.difference_update(lost)
        start = min(position, lost[0] * SECTOR)
        end = max(position + len(data), (lost[-1] + 1) * SECTOR)
        return start, bytes(self.content[start:end])

    def _torn_prefix(self, random: SimRandom) -> bytearray:
        found = bytearray(self._platter)
        kept = random.below(len(self._unsynced) + 1)
        for change in self._unsynced[:kept]:
            _apply(found, change)
        if kept < len(self._unsynced):
            position, data = self._unsynced[kept]
            if data and random.chance(0.5):
                _apply(found, (position, data[: random.below(len(data))]))
        return found

    def _reordered(self, random: SimRandom) -> bytearray:
        touches: dict[int, list[int]] = {}
        for number, change in enumerate(self._unsynced):
            for sector in _sectors(change):
                touches.setdefault(sector, [-1]).append(number)
        survivor = {sector: random.choice(numbers) for sector, numbers in touches.items()}
        size_after = random.below(len(self._unsynced) + 1) - 1

        found = bytearray(self._platter)
        size = len(found)
        running = bytearray(self._platter)
        for number, change in enumerate(self._unsynced):
            _apply(running, change)
            for sector in _sectors(change):
                if survivor[sector] == number:
                    start = sector * SECTOR
                    _apply(found, (start, bytes(running[start : start + SECTOR])))
            if number == size_after:
                size = len(running)
        _apply(found, (size, None))
        return found


class FolderNode:
    __slots__ = ("_names", "_platter", "_unsynced", "entries")

    def __init__(self, entries: "dict[str, FileNode | FolderNode] | None" = None) -> None:
        self.entries = entries or {}
        self._platter = dict(self.entries)
        self._unsynced: list[NameChange] = []
        self._names: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Sorted; the same object until one changes."""
        if self._names is None:
            self._names = tuple(sorted(self.entries))
        return self._names

    def set_name(self, name: str, node: "FileNode | FolderNode | None") -> None:
        self._change(((name, node),))

    def rename(self, source: str, target: str) -> None:
        self._change(((source, None), (target, self.entries[source])))

    def sync(self) -> None:
        if self._unsynced:
            self._platter = dict(self.entries)
            self._unsynced.clear()

    def after_power_loss(self, random: SimRandom, *, reorder: bool) -> "FolderNode":
        found = dict(self._platter)
        for change in self._unsynced[: random.below(len(self._unsynced) + 1)]:
            _set_names(found, change)
        return FolderNode({name: node.after_power_loss(random, reorder=reorder) for name, node in found.items()})

    def used_bytes(self) -> int:
        nodes = self.entries.values()
        return sum(len(node.content) if isinstance(node, FileNode) else node.used_bytes() for node in nodes)

    def _change(self, change: NameChange) -> None:
        self._unsynced.append(change)
        self._names = None
        _set_names(self.entries, change)


def _apply(image: bytearray, change: FileChange) -> None:
    position, data = change
    if data == b"":
        return
    if len(image) < position:
        image.extend(bytes(position - len(image)))
    if data is None:
        del image[position:]
    else:
        image[position : position + len(data)] = data


def _sectors(change: FileChange) -> Iterator[int]:
    position, data = change
    if data:
        yield from range(position // SECTOR, (position + len(data) - 1) // SECTOR + 1)


def _set_names(entries: "dict[str, FileNode | FolderNode]", change: NameChange) -> None:
    for name, node in change:
        if node is None:
            del entries[name]
        else:
            entries[name] = node
