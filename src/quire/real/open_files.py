"""How many files a node can have open: more than the operating system lets it.

A node has three files per segment and thousands of partitions; a process has a limited number of descriptors. So a file
that is open for its owner holds a descriptor only while it is used often. `OpenFiles` closes descriptors that have not
been used lately and opens them again when they are needed, by the file's present path. What a path no longer leads to
(a removed file, a file replaced by a rename) keeps its descriptor until its owner closes it.

The event loop and the job threads use files at the same time. A descriptor that a thread is using is never closed under
it: the number could meanwhile belong to another file. The lock is held for bookkeeping alone, never for a system call.
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
    """Lifts the soft limit of open descriptors to the hard one and returns what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _ENOUGH_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


class Descriptor:
    """One file's place in the table. `number` is the descriptor, or -1 while it has none."""

    __slots__ = ("closed", "holds", "number", "path", "pinned", "recently_used", "users")

    def __init__(self, path: str, number: int = _NOT_OPEN) -> None:
        self.path = path
        self.number = number
        self.users = 0
        """System calls in progress; the number stays as it is until there are none."""
        self.holds = 0
        """Slices on their way to a socket; a close waits for them."""
        self.recently_used = True
        self.pinned = False
        """The path no longer leads here, or a lock hangs on this number: never closed before its owner closes it."""
        self.closed = False


class OpenFiles:
    """All files one process has open, of which at most about `limit` have a descriptor."""

    def __init__(self, limit: int) -> None:
        assert limit > 0
        self._limit = limit
        self._lock = threading.Lock()
        self._ring: OrderedDict[Descriptor, None] = OrderedDict()
        self._by_folder: dict[str, dict[str, list[Descriptor]]] = {}

    @property
    def descriptors(self) -> int:
        """How many descriptors are in use now."""
        return len(self._ring)

    def add(self, path: str, number: int = _NOT_OPEN) -> Descriptor:
        """Enters a file, with the descriptor it was just opened with if there is one."""
        descriptor = Descriptor(path, number)
        with self._lock:
            self._enter(descriptor)
            unused = self._opened(descriptor) if number != _NOT_OPEN else []
        _close_all(unused)
        return descriptor

    def acquire(self, descriptor: Descriptor) -> int:
        """The descriptor's number, not to be closed until `release`."""
        with self._lock:
            if descriptor.number >= 0:
                descriptor.users += 1
                descriptor.recently_used = True
                return descriptor.number
        return self._reopen(descriptor)

    def release(self, descriptor: Descriptor) -> None:
        with self._lock:
            descriptor.users -= 1
            unused = self._let_go(descriptor) if descriptor.closed else _NOT_OPEN
        if unused >= 0:
            os.close(unused)

    def hold(self, descriptor: Descriptor) -> None:
        """Keeps the file readable, also after its owner closes it, until `unhold`."""
        with self._lock:
            if descriptor.closed and descriptor.holds == 0:
                raise _is_closed(descriptor)
            descriptor.holds += 1

    def unhold(self, descriptor: Descriptor) -> None:
        with self._lock:
            descriptor.holds -= 1
            unused = self._let_go(descriptor) if descriptor.closed else _NOT_OPEN
        if unused >= 0:
            os.close(unused)

    def close(self, descriptor: Descriptor) -> None:
        with self._lock:
            if descriptor.closed:
                return
            descriptor.closed = True
            unused = self._let_go(descriptor)
        if unused >= 0:
            os.close(unused)

    def pin(self, descriptor: Descriptor) -> None:
        """Keeps this very descriptor open until the file is closed."""
        self.acquire(descriptor)
        descriptor.pinned = True
        self.release(descriptor)

    @contextmanager
    def moving(self, source: str, target: str) -> Iterator[None]:
        """Around a rename: files below `source` follow to `target`, files that `target` was stay readable.

        Every file concerned has its descriptor while the names change, so nobody opens a path that just moved.
        """
        for descriptor in self._at(target):
            self.pin(descriptor)
        moved: list[tuple[Descriptor, str]] = []
        try:
            for path, descriptor in self._below(source):
                self.acquire(descriptor)
                moved.append((descriptor, target + path[len(source) :]))
            yield
            with self._lock:
                for descriptor, path in moved:
                    self._leave(descriptor)
                    descriptor.path = path
                    self._enter(descriptor)
        finally:
            for descriptor, _ in moved:
                self.release(descriptor)

    def removing(self, path: str) -> None:
        """Before `path`, a file or a folder, is removed: who has it open goes on reading it."""
        for _, descriptor in self._below(path):
            self.pin(descriptor)

    def _reopen(self, descriptor: Descriptor) -> int:
        while True:
            with self._lock:
                if descriptor.closed and descriptor.holds == 0:
                    raise _is_closed(descriptor)
                path = descriptor.path
            number, failure = _NOT_OPEN, None
            try:
                number = os.open(path, os.O_RDWR)
            except OSError as error:
                failure = error
            unused = [number] if number >= 0 else []
            with self._lock:
                if descriptor.number < 0 and descriptor.path == path and number >= 0:
                    descriptor.number = number
                    unused = self._opened(descriptor)
                if descriptor.number >= 0:
                    descriptor.users += 1
                    descriptor.recently_used = True
                    failure = None
                elif descriptor.path != path:
                    failure = None
                acquired = descriptor.number
            _close_all(unused)
            if failure is not None:
                raise failure
            if acquired >= 0:
                return acquired

    def _opened(self, descriptor: Descriptor) -> list[int]:
        """Enters a descriptor just opened into the ring; returns the numbers to close for it."""
        self._ring[descriptor] = None
        unused = []
        for _ in range(2 * len(self._ring)):
            if len(self._ring) <= self._limit:
                break
            oldest, _ = self._ring.popitem(last=False)
            if oldest.users or oldest.pinned or oldest is descriptor or oldest.recently_used:
                # A second chance: whoever is used again before the ring comes round stays.
                oldest.recently_used = False
                self._ring[oldest] = None
            else:
                unused.append(oldest.number)
                oldest.number = _NOT_OPEN
        return unused

    def _let_go(self, descriptor: Descriptor) -> int:
        """The number to close of a file that was closed, once nobody uses or holds it any more."""
        if descriptor.users or descriptor.holds:
            return _NOT_OPEN
        self._leave(descriptor)
        number, descriptor.number = descriptor.number, _NOT_OPEN
        if number >= 0:
            del self._ring[descriptor]
        return number

    def _enter(self, descriptor: Descriptor) -> None:
        folder, _, name = descriptor.path.rpartition("/")
        self._by_folder.setdefault(folder, {}).setdefault(name, []).append(descriptor)

    def _leave(self, descriptor: Descriptor) -> None:
        folder, _, name = descriptor.path.rpartition("/")
        names = self._by_folder[folder]
        names[name].remove(descriptor)
        if not names[name]:
            del names[name]
        if not names:
            del self._by_folder[folder]

    def _at(self, path: str) -> list[Descriptor]:
        folder, _, name = path.rpartition("/")
        with self._lock:
            return self._by_folder.get(folder, {}).get(name, []).copy()

    def _below(self, path: str) -> list[tuple[str, Descriptor]]:
        """The open files that `path` is or contains. Costs what the folder costs, not what the table does."""
        found = [(path, descriptor) for descriptor in self._at(path)]
        if os.path.isdir(path):
            for folder, _, _ in os.walk(path):
                with self._lock:
                    files = [(name, list(same)) for name, same in self._by_folder.get(folder, {}).items()]
                found += [(f"{folder}/{name}", descriptor) for name, same in files for descriptor in same]
        # What was removed or replaced before is no longer behind its old path.
        return [(at, descriptor) for at, descriptor in found if not descriptor.pinned]


def _close_all(numbers: list[int]) -> None:
    for number in numbers:
        os.close(number)


def _is_closed(descriptor: Descriptor) -> OSError:
    return OSError(errno.EBADF, "the file has been closed", descriptor.path)
