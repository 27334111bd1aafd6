"""More open files than the operating system allows descriptors.

A node has three files per segment and thousands of partitions; a process has a limited number of descriptors. So a file
that is open for its owner has a descriptor only while it is used often. `OpenFiles` closes descriptors that were not
used recently, and opens them again when they are needed, by the file's current path. A file that its path no longer
leads to (it was removed, or replaced by a rename) keeps its descriptor until its owner closes it.

The event loop and the job threads use files at the same time. A descriptor is never closed while a thread uses it,
because its number could then belong to another file. The lock is held only for bookkeeping, never for a system call.
"""

import errno
import os
import resource
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

_NOT_OPEN = -1
_ENOUGH_DESCRIPTORS = 1 << 20


def raise_descriptor_limit() -> int:
    """Raises the soft limit of open descriptors to the hard limit, and returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _ENOUGH_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


class OpenFile:
    """A file that is open for its owner, with a descriptor while it is used. `number` is the descriptor, or -1.

    `acquire` and `release` are called for every read and write, so they take no lock. They rely on an order instead: a
    user registers itself first and then reads the number; the code that takes the number away does so first and then
    checks for users. So either the user finds no number, or the other side finds the user.
    """

    __slots__ = ("_files", "closed", "forgotten", "holds", "number", "path", "pinned", "recently_used", "users")

    def __init__(self, files: "OpenFiles", path: str, number: int = _NOT_OPEN) -> None:
        self.path = path
        """The current path: it follows renames."""
        self.number = number
        self.users: list[None] = []
        """One entry per system call in progress; a list, because it is changed without a lock."""
        self.holds = 0
        """Slices in send queues; a close waits for them."""
        self.recently_used = True
        self.pinned = False
        """The path no longer leads to this file, or the descriptor has a lock: only its owner's close closes it."""
        self.closed = False
        self.forgotten = False
        """Closed, and no longer used."""
        self._files = files
        files.add(self)

    def acquire(self) -> int:
        """The descriptor for a system call; the caller must call `release` after it."""
        self.users.append(None)
        number = self.number
        if number >= 0:
            self.recently_used = True
            return number
        try:
            return self._files.reopen(self)
        except BaseException:
            self.release()
            raise

    def acquire_unless_closed(self) -> bool:
        try:
            self.acquire()
        except OSError:
            if not self.closed:
                raise
            return False
        return True

    def release(self) -> None:
        self.users.pop()
        if self.closed:
            self._files.forget(self)

    def hold(self) -> None:
        """Keeps the file readable until `unhold`, even if its owner closes or removes it."""
        self._files.hold(self)

    def unhold(self) -> None:
        self._files.unhold(self)

    def pin(self) -> None:
        """Keeps this descriptor until the file is closed."""
        if self.acquire_unless_closed():
            self.pinned = True
            self.release()

    def close(self) -> None:
        self.closed = True
        self._files.forget(self)


class OpenFiles:
    """All open files of one process, of which about `limit` have a descriptor at most."""

    def __init__(self, limit: int, *, read_only: bool = False) -> None:
        assert limit > 0
        self._limit = limit
        self._flags = os.O_RDONLY if read_only else os.O_RDWR
        self._lock = threading.Lock()
        self._ring: OrderedDict[OpenFile, None] = OrderedDict()
        self._by_folder: dict[str, dict[str, list[OpenFile]]] = {}

    @property
    def descriptors(self) -> int:
        """How many descriptors are in use."""
        return len(self._ring)

    def add(self, file: OpenFile) -> None:
        """Registers a file, with the descriptor that it was opened with, if there is one."""
        with self._lock:
            self._enter(file)
            unused = self._opened(file) if file.number >= 0 else []
        _close_all(unused)

    def reopen(self, file: OpenFile) -> int:
        """Opens a file that has no descriptor, at its current path."""
        while True:
            with self._lock:
                if file.closed and not file.holds:
                    raise OSError(errno.EBADF, "the file has been closed", file.path)
                path = file.path
            number, failure = _NOT_OPEN, None
            try:
                number = os.open(path, self._flags)
            except OSError as error:
                failure = error
            unused = [number] if number >= 0 else []
            with self._lock:
                if file.number < 0 and file.path == path and number >= 0:
                    file.number = number
                    unused = self._opened(file)
                acquired = file.number
                moved = file.path != path
            _close_all(unused)
            if acquired >= 0:
                return acquired
            if failure is not None and not moved:
                raise failure

    def hold(self, file: OpenFile) -> None:
        with self._lock:
            if file.closed and not file.holds:
                raise OSError(errno.EBADF, "the file has been closed", file.path)
            file.holds += 1

    def unhold(self, file: OpenFile) -> None:
        with self._lock:
            file.holds -= 1
        if file.closed:
            self.forget(file)

    def forget(self, file: OpenFile) -> None:
        """Forgets a closed file when it is no longer used or held."""
        with self._lock:
            if file.users or file.holds or file.forgotten:
                return
            number = self._take_number(file)
            if file.number >= 0:
                # Another thread has just begun to use it; `release` will call this again.
                return
            file.forgotten = True
            self._leave(file)
            if number >= 0:
                del self._ring[file]
        if number >= 0:
            os.close(number)

    @contextmanager
    def moving(self, source: str, target: str) -> Iterator[None]:
        """Wraps a rename: files below `source` get paths below `target`, and replaced files stay readable.

        All of these files have a descriptor during the rename, so no thread opens a path that has just moved.
        """
        for file in self._at(target):
            file.pin()
        moved: list[tuple[OpenFile, str]] = []
        try:
            for path, file in self._below(source):
                if file.acquire_unless_closed():
                    moved.append((file, target + path[len(source) :]))
            yield
            with self._lock:
                for file, path in moved:
                    self._leave(file)
                    file.path = path
                    self._enter(file)
        finally:
            for file, _ in moved:
                file.release()

    def removing(self, path: str) -> None:
        """Called before `path`, a file or a folder, is removed: open files stay readable."""
        for _, file in self._below(path):
            file.pin()

    def _opened(self, file: OpenFile) -> list[int]:
        """Adds a new descriptor to the ring; returns the descriptors to close for it."""
        self._ring[file] = None
        unused = []
        for _ in range(2 * len(self._ring)):
            if len(self._ring) <= self._limit:
                break
            oldest, _ = self._ring.popitem(last=False)
            # The clock algorithm: a file that was used since the last round keeps its descriptor.
            stays = oldest.recently_used or oldest.pinned or oldest is file
            oldest.recently_used = False
            number = _NOT_OPEN if stays else self._take_number(oldest)
            if number >= 0:
                unused.append(number)
            else:
                self._ring[oldest] = None
        return unused

    def _take_number(self, file: OpenFile) -> int:
        """Takes a file's descriptor away to close it, unless it is in use."""
        number, file.number = file.number, _NOT_OPEN
        if file.users:
            file.number, number = number, _NOT_OPEN
        return number

    def _enter(self, file: OpenFile) -> None:
        folder, _, name = file.path.rpartition("/")
        self._by_folder.setdefault(folder, {}).setdefault(name, []).append(file)

    def _leave(self, file: OpenFile) -> None:
        folder, _, name = file.path.rpartition("/")
        names = self._by_folder[folder]
        names[name].remove(file)
        if not names[name]:
            del names[name]
        if not names:
            del self._by_folder[folder]

    def _at(self, path: str) -> list[OpenFile]:
        folder, _, name = path.rpartition("/")
        with self._lock:
            return self._by_folder.get(folder, {}).get(name, []).copy()

    def _below(self, path: str) -> list[tuple[str, OpenFile]]:
        """The open files at or below `path`. The cost depends on the size of the folder, not on all open files."""
        found = [(path, file) for file in self._at(path)]
        if os.path.isdir(path):
            for folder, _, _ in os.walk(path):
                with self._lock:
                    files = [(name, list(same)) for name, same in self._by_folder.get(folder, {}).items()]
                found += [(f"{folder}/{name}", file) for name, same in files for file in same]
        # Files that were removed or replaced before are no longer at their old paths.
        return [(at, file) for at, file in found if not file.pinned]


def _close_all(numbers: list[int]) -> None:
    for number in numbers:
        os.close(number)
