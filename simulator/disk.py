"""Files in memory that forget what was not synced: the simulated Disk seam.

One `SimDisk` is the file system as one running process sees it. `crash` ends it by power loss and returns the disk as
found afterwards (`simulator.inodes` has the rules); `kill` ends it as kill -9 does, so everything written is still
there. The old disk and its open files then refuse everything, which catches callbacks that outlived their node.

Every changing call is numbered. `SimDisk(crash_at=n)` raises `Crashed` in place of the n-th, so a test can crash at
each step of an operation in turn:

    for n in itertools.count(1):
        disk = SimDisk(random, crash_at=n)
        try:
            operation(disk)
        except Crashed:
            check(disk.crash(random))
        else:
            break

`fail_at` and `fail_when` make calls raise an OSError instead.
"""

import errno
from collections.abc import Callable, Sequence
from functools import lru_cache
from zlib import crc32

from quire.seams import Buffer
from simulator.disk_calls import Crashed, DiskCall, DiskCalls, number_is, os_error
from simulator.fault_counts import Felt, unnoticed
from simulator.inodes import FileNode, FolderNode
from simulator.random import SimRandom
from simulator.trace import Trace

__all__ = ["Crashed", "DiskCall", "SimDisk", "SimFile"]

UNLIMITED_BYTES = 1 << 40


class SimFile:
    """Implements `quire.seams.File`."""

    __slots__ = ("_disk", "_handle", "_node", "_path")

    def __init__(self, disk: "SimDisk", handle: int, path: str, node: FileNode) -> None:
        self._disk = disk
        self._handle = handle
        self._path = path
        self._node = node

    @property
    def path(self) -> str:
        """Where the file is now: it follows renames."""
        return self._path

    def size(self) -> int:
        self._reads(0)
        return len(self._node.content)

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> int:
        self._check_open()
        data = b"".join(buffers)
        trouble = self._disk.calls.change("write", self._path, len(data), f"@{position} {crc32(data):08x}")
        if trouble is None and not self._disk.has_room(position + len(data) - len(self._node.content)):
            trouble = os_error(errno.ENOSPC, self._path)
        if trouble is not None:
            self._node.write(data[: self._disk.torn_size(len(data))], position)
            raise trouble
        self._node.write(data, position)
        self._node.modified_ms = self._disk.now_ms()
        return len(data)

    def pread(self, size: int, position: int) -> bytes:
        self._reads(size)
        return bytes(self._node.content[position : position + size])

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        self._reads(len(buffer))
        found = self._node.content[position : position + len(buffer)]
        buffer[: len(found)] = found
        return len(found)

    def cached(self, size: int, position: int) -> bool:
        return not self._disk.is_cold()

    def truncate(self, size: int) -> None:
        self._check_open()
        trouble = self._disk.calls.change("truncate", self._path, size)
        if trouble is not None:
            raise trouble
        self._node.truncate(size)
        self._node.modified_ms = self._disk.now_ms()

    def trim(self) -> None:
        self._check_open()

    def sync(self) -> None:
        self._check_open()
        trouble = self._disk.calls.change("sync", self._path)
        if isinstance(trouble, OSError):
            self._node.fail_sync()
        if trouble is not None:
            raise trouble
        self._node.sync()

    def close(self) -> None:
        self._disk.forget(self._handle)

    def hold(self) -> None:
        """Keeps the file readable until `unhold`, even if its owner closes it: a slice of it is being sent."""
        self._disk.held[self._handle] = self._disk.held.get(self._handle, 0) + 1

    def unhold(self) -> None:
        self._disk.held[self._handle] -= 1

    def moved(self, source: str, target: str) -> None:
        """A file or folder was renamed, perhaps this one or one of its parents."""
        above, old = _parts(source), _parts(self._path)
        if old[: len(above)] == above:
            self._path = "/" * self._path.startswith("/") + "/".join(_parts(target) + old[len(above) :])

    def _reads(self, size: int) -> None:
        if not self._disk.held.get(self._handle):
            self._check_open()
        self._disk.calls.read("read", self._path, size)

    def _check_open(self) -> None:
        if not self._disk.is_open(self._handle):
            raise os_error(errno.EBADF, self._path)


class SimDisk:
    """Implements `quire.seams.Disk`. Relative and absolute paths are the same: there is one root.

    With a `random`, a write that fails or crashes has taken a random part of its bytes, as real ones do, and `cached`
    is false with `cold_chance`. `now_ms` is the time that files get when they change.
    """

    def __init__(
        self,
        random: SimRandom | None = None,
        *,
        crash_at: int | None = None,
        capacity_bytes: int | None = None,
        cold_chance: float = 0.0,
        now_ms: Callable[[], int] = lambda: 0,
        trace: Trace | None = None,
        name: str = "disk",
    ) -> None:
        self.calls = DiskCalls(name, crash_at, trace)
        self.capacity_bytes = capacity_bytes
        self.filled: Felt = unnoticed
        """Called when there is no room for a write."""
        self._root = FolderNode()
        self._power_losses = 0
        self._random = random
        self._cold_chance = cold_chance
        self.now_ms = now_ms
        self._trace = trace
        self.held: dict[int, int] = {}
        self._open: dict[int, SimFile] = {}
        self._handles = 0
        self._locked: dict[str, int] = {}

    # --- Crashes, errors, and access for tests

    @property
    def operations(self) -> int:
        """The number of changing calls so far."""
        return self.calls.count

    def crash(self, random: SimRandom, *, reorder: bool = False) -> "SimDisk":
        """Power loss: the disk as the next start finds it. Afterwards this one is unusable."""
        after = self._successor(self._root.after_power_loss(random, reorder=reorder))
        after._power_losses += 1
        return after

    def kill(self) -> "SimDisk":
        """The process dies, the machine does not: all that was written is there, synced or not."""
        return self._successor(self._root)

    def fail_at(self, number: int, code: int = errno.EIO) -> None:
        """The changing call with this number raises OSError(code)."""
        self.fail_when(number_is(number), code)

    def fail_when(self, matches: Callable[[DiskCall], bool], code: int = errno.EIO, *, times: int = 1) -> None:
        """The next `times` calls that match raise OSError(code); reads can be matched too."""
        self.calls.fail_when(matches, code, times)

    def open_paths(self) -> list[str]:
        """Files that are open now, in the order they were opened: for tests that nothing leaks."""
        return [file.path for file in self._open.values()]

    def peek_names(self, path: str) -> Sequence[str]:
        """The names in a folder, none if it does not exist; the same object until they change. Not a call: no fault
        hits it."""
        node = self._find(path)
        return node.names if isinstance(node, FolderNode) else ()

    def peek_changes(self, path: str) -> int:
        """How often a file was changed so far. Not a call, as `peek_names`."""
        return self._file(path).changes

    def peek(self, path: str, position: int = 0) -> bytes:
        """A file from `position` on, as it was written. Not a call, as `peek_names`."""
        return self._file(path).as_written(position)

    def flip(self, path: str, position: int, bit: int) -> None:
        """Damages a file, all of which was synced."""
        self._file(path).flip(position, bit)

    def is_synced(self, path: str) -> bool:
        return self._file(path).is_synced

    # --- The seam

    def open(self, path: str, *, create: bool = False) -> SimFile:
        folder, name = self._parent(path)
        node = folder.entries.get(name)
        if node is None:
            if not create:
                raise os_error(errno.ENOENT, path)
            self._change("create", path)
            node = FileNode(modified_ms=self.now_ms())
            folder.set_name(name, node)
        else:
            self.calls.read("open", path)
        if isinstance(node, FolderNode):
            raise os_error(errno.EISDIR, path)
        self._handles += 1
        file = self._open[self._handles] = SimFile(self, self._handles, path, node)
        return file

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._find(path), FolderNode)

    def list_dir(self, path: str) -> list[str]:
        self.calls.read("list", path)
        return list(self._folder(path).names)

    def make_dirs(self, path: str) -> None:
        folder = self._root
        for part in _parts(path):
            node = folder.entries.get(part)
            if node is None:
                self._change("make_dir", path, note=part)
                node = FolderNode()
                folder.set_name(part, node)
            if not isinstance(node, FolderNode):
                raise os_error(errno.ENOTDIR, path)
            folder = node

    def rename(self, source: str, target: str) -> None:
        folder, name = self._parent(source)
        target_folder, target_name = self._parent(target)
        node, replaced = folder.entries.get(name), target_folder.entries.get(target_name)
        if node is None:
            raise os_error(errno.ENOENT, source)
        if target_folder is not folder:
            # File systems differ in which of two folders is durable first: nothing may depend on it.
            raise os_error(errno.EXDEV, target)
        if isinstance(replaced, FolderNode) and replaced.entries:
            raise os_error(errno.ENOTEMPTY, target)
        if replaced is not None and type(replaced) is not type(node):
            raise os_error(errno.EISDIR if isinstance(replaced, FolderNode) else errno.ENOTDIR, target)
        self._change("rename", source, note=target)
        if name != target_name:
            folder.rename(name, target_name)
            for file in self._open.values():
                # Most files are elsewhere; this check is cheaper than the comparison.
                if name in file.path:
                    file.moved(source, target)

    def remove(self, path: str) -> None:
        folder, name = self._parent(path)
        node = folder.entries.get(name)
        if not isinstance(node, FileNode):
            raise os_error(errno.ENOENT if node is None else errno.EISDIR, path)
        self._change("remove", path)
        folder.set_name(name, None)

    def remove_tree(self, path: str) -> None:
        """Removes name by name, so that a crash may leave half of it."""
        for name, node in sorted(self._folder(path).entries.items()):
            child = f"{path.rstrip('/')}/{name}"
            if isinstance(node, FolderNode):
                self.remove_tree(child)
            else:
                self.remove(child)
        parent, name = self._parent(path)
        self._change("remove", path)
        parent.set_name(name, None)

    def sync_dir(self, path: str) -> None:
        folder = self._folder(path)
        self._change("sync_dir", path)
        folder.sync()

    def read_file(self, path: str) -> bytes:
        content = self._file(path).content
        self.calls.read("read", path, len(content))
        return bytes(content)

    def file_size(self, path: str) -> int:
        return len(self._file(path).content)

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._change("set_modified", path)
        self._file(path).modified_ms = modified_ms

    def free_bytes(self, path: str) -> int:
        return max(0, self.total_bytes(path) - self._root.used_bytes())

    def total_bytes(self, path: str) -> int:
        self._folder(path)
        return UNLIMITED_BYTES if self.capacity_bytes is None else self.capacity_bytes

    def is_same_disk(self, path: str, other: str) -> bool:
        return True

    def cache_id(self, path: str) -> str | None:
        self._folder(path)
        return f"after {self._power_losses} power losses"

    def lock(self, path: str) -> SimFile | None:
        self._change("lock", path)
        key = "/".join(_parts(path))
        if key in self._locked:
            return None
        file = self.open(path, create=True)
        self._locked[key] = self._handles
        return file

    # --- For SimFile

    def has_room(self, growth: int) -> bool:
        if self.capacity_bytes is None or growth <= 0 or self._root.used_bytes() + growth <= self.capacity_bytes:
            return True
        self.filled()
        return False

    def torn_size(self, size: int) -> int:
        return self._random.below(size + 1) if self._random is not None else 0

    def is_cold(self) -> bool:
        return self._cold_chance > 0 and self._random is not None and self._random.chance(self._cold_chance)

    def is_open(self, handle: int) -> bool:
        return handle in self._open

    def forget(self, handle: int) -> None:
        self._open.pop(handle, None)
        self._locked = {path: holder for path, holder in self._locked.items() if holder != handle}

    def _successor(self, root: FolderNode) -> "SimDisk":
        self.calls.ended = True
        disk = SimDisk(
            self._random,
            capacity_bytes=self.capacity_bytes,
            cold_chance=self._cold_chance,
            now_ms=self.now_ms,
            trace=self._trace,
            name=self.calls.name,
        )
        disk._root = root
        disk.filled = self.filled
        disk._power_losses = self._power_losses
        return disk

    def _change(self, kind: str, path: str, note: str = "") -> None:
        trouble = self.calls.change(kind, path, note=note)
        if trouble is not None:
            raise trouble

    def _find(self, path: str) -> FileNode | FolderNode | None:
        return self._walk(_parts(path))

    def _walk(self, parts: Sequence[str]) -> FileNode | FolderNode | None:
        self.calls.check_alive()
        node: FileNode | FolderNode | None = self._root
        for part in parts:
            node = node.entries.get(part) if isinstance(node, FolderNode) else None
        return node

    def _folder(self, path: str) -> FolderNode:
        return _as_folder(self._find(path), path)

    def _file(self, path: str) -> FileNode:
        node = self._find(path)
        if not isinstance(node, FileNode):
            raise os_error(errno.ENOENT if node is None else errno.EISDIR, path)
        return node

    def _parent(self, path: str) -> tuple[FolderNode, str]:
        *above, name = _parts(path)
        return _as_folder(self._walk(above), path), name


def _as_folder(node: FileNode | FolderNode | None, path: str) -> FolderNode:
    if not isinstance(node, FolderNode):
        raise os_error(errno.ENOENT if node is None else errno.ENOTDIR, path)
    return node


@lru_cache(maxsize=10_000)
def _parts(path: str) -> tuple[str, ...]:
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    assert ".." not in parts, f"the simulated disk does not support ..: {path}"
    return parts
