"""Temporary data folders, and the removal of those whose owners were killed before they could do it.

A folder belongs to whoever holds the lock on the `.lock` in it: the node that has its data there, or the test cluster
that `hold`s it. Each new folder is an occasion to sweep: a folder goes only if its name has the form made here, it
is this user's, was not touched for a minute (its owner may not have got to locking it), and its lock can be taken.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time

LOCK_FILE = ".lock"
MIN_AGE_S = 60

EPHEMERAL_PREFIX = "quire-ephemeral-"
CLUSTER_PREFIX = "quire-testing-"
_LEFT_OVER = re.compile(rf"(?:{EPHEMERAL_PREFIX}|{CLUSTER_PREFIX})[a-z0-9_]{{8}}")


def temporary_folder(prefix: str) -> str:
    """A new folder with one of the prefixes above."""
    sweep(tempfile.gettempdir())
    return tempfile.mkdtemp(prefix=prefix)


def hold(folder: str) -> int:
    """Keeps the folder from being swept until the descriptor is closed, if only by the end of the process."""
    descriptor = os.open(os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def sweep(place: str) -> None:
    """Removes what killed processes left in `place`. Never fails: it is a courtesy."""
    try:
        names = [name for name in os.listdir(place) if _LEFT_OVER.fullmatch(name)]
    except OSError:
        return
    for name in names:
        try:
            _remove_if_abandoned(os.path.join(place, name))
        except OSError:
            continue


def _remove_if_abandoned(folder: str) -> None:
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or time.time() - status.st_mtime < MIN_AGE_S:
        return
    descriptor = os.open(os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
