"""Temporary data folders, and the removal of folders whose owners were killed.

A folder belongs to the process that holds a lock on it. It gets its name only after it is locked, so a folder with such
a name and without a lock is left over from a killed process. Creating a folder first removes those of this user.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time

LOCK_FILE = ".lock"

EPHEMERAL_PREFIX = "quire-ephemeral-"
CLUSTER_PREFIX = "quire-testing-"
_UNNAMED = "new-"
_UNNAMED_AGE_S = 60
_LEFT_OVER = re.compile(rf"(?:{_UNNAMED})?(?:{EPHEMERAL_PREFIX}|{CLUSTER_PREFIX})[a-z0-9_]{{8}}")


class TemporaryFolder:
    """A new folder with one of the prefixes above. It is in use until `remove`, or until the process ends."""

    __slots__ = ("_lock", "path")

    def __init__(self, prefix: str) -> None:
        parent = tempfile.gettempdir()
        sweep(parent)
        unnamed = tempfile.mkdtemp(prefix=_UNNAMED + prefix, dir=parent)
        try:
            self._lock = _lock(unnamed)
        except OSError:  # a file system without locks on folders, where no sweep can lock it either
            self._lock = -1
        self.path = os.path.join(parent, os.path.basename(unnamed).removeprefix(_UNNAMED))
        os.rename(unnamed, self.path)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep(parent: str) -> None:
    """Removes folders that killed processes have left in `parent`. Ignores errors: the folders do no harm."""
    try:
        names = [name for name in os.listdir(parent) if _LEFT_OVER.fullmatch(name)]
    except OSError:
        return
    for name in names:
        try:
            _remove_if_abandoned(os.path.join(parent, name))
        except OSError:
            continue


def _remove_if_abandoned(folder: str) -> None:
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    if os.path.basename(folder).startswith(_UNNAMED):
        if time.time() - status.st_mtime > _UNNAMED_AGE_S:  # its owner locks and names it at once, or was killed
            os.rmdir(folder)
        return
    locks = []
    try:
        for path in (folder, os.path.join(folder, LOCK_FILE)):
            if os.path.lexists(path):
                locks.append(_lock(path))
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        for lock in locks:
            os.close(lock)


def _lock(path: str) -> int:
    """A descriptor that holds the lock; BlockingIOError if another process holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
