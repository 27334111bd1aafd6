"""Every call to a simulated disk passes here: it is numbered and traced, and can be made to fail or to crash."""

import errno
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from simulator.trace import Trace

READS = ("open", "read", "list")

_WORDS = {
    errno.ENOENT: "No such file or directory",
    errno.EIO: "Input/output error",
    errno.EBADF: "Bad file descriptor",
    errno.EXDEV: "Invalid cross-device link",
    errno.ENOTDIR: "Not a directory",
    errno.EISDIR: "Is a directory",
    errno.EMFILE: "Too many open files",
    errno.ENOSPC: "No space left on device",
    errno.EROFS: "Read-only file system",
    errno.ENOTEMPTY: "Directory not empty",
}
"""The errors of a simulated disk, in the words of Linux. The simulation must not ask the system for them."""


class Crashed(BaseException):
    """A machine crashed: the one with the disk of this name.

    Not an Exception, so that no error handling of the node catches it.
    """

    def __init__(self, disk: str, reason: str) -> None:
        super().__init__(f"{disk} {reason}")
        self.disk = disk


class DiskCall(NamedTuple):
    """A call about to happen. Changing calls are numbered from 1; reads carry the number of the last change."""

    number: int
    kind: str
    """create, write, truncate, set_modified, sync, make_dir, rename, remove, sync_dir, lock.

    Or, not numbered: open, read, list.
    """
    path: str
    size: int


@dataclass(slots=True)
class _Fault:
    matches: Callable[[DiskCall], bool]
    code: int
    times: int


class DiskCalls:
    def __init__(self, name: str, crash_at: int | None, trace: Trace | None) -> None:
        self.name = name
        self.count = 0
        self.crash_at = crash_at
        self.ended = False
        self.history: deque[DiskCall] = deque(maxlen=10_000)
        self._trace = trace
        self._faults: list[_Fault] = []

    def fail_when(self, matches: Callable[[DiskCall], bool], code: int, times: int) -> None:
        self._faults.append(_Fault(matches, code, times))

    @property
    def has_faults(self) -> bool:
        return bool(self._faults)

    def forget_faults(self) -> None:
        self._faults.clear()

    def change(self, kind: str, path: str, size: int = 0, note: str = "") -> BaseException | None:
        """Numbers a changing call; returns the error that it must raise instead, if any."""
        self.check_alive()
        self.count += 1
        operation = DiskCall(self.count, kind, path, size)
        self.history.append(operation)
        if self._trace is not None:
            self._trace.note(f"{self.name} {self.count} {kind} {path} {size} {note}")
        if self.count == self.crash_at:
            self.ended = True
            return Crashed(self.name, f"crashed at operation {self.count}: {kind} {path}")
        return self._fault(operation)

    def read(self, kind: str, path: str, size: int = 0) -> None:
        self.check_alive()
        if self._faults and (error := self._fault(DiskCall(self.count, kind, path, size))):
            raise error

    def check_alive(self) -> None:
        if self.ended:
            raise Crashed(self.name, "is gone: a callback outlived its node")

    def _fault(self, operation: DiskCall) -> OSError | None:
        for fault in self._faults:
            if fault.matches(operation):
                fault.times -= 1
                if fault.times == 0:
                    self._faults.remove(fault)
                return os_error(fault.code, operation.path)
        return None


def os_error(code: int, path: str) -> OSError:
    return OSError(code, _WORDS[code], path)


def number_is(number: int) -> Callable[[DiskCall], bool]:
    return lambda operation: operation.number == number and operation.kind not in READS
