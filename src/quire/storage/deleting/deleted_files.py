"""Renaming files to `.deleted`. A job, or the next start, removes them."""

import itertools
from collections.abc import Iterable

from quire.seams import Disk
from quire.storage.errors import is_full
from quire.storage.file_names import DELETED


def mark_deleted(disk: Disk, paths: Iterable[str]) -> list[str]:
    """Renames the files that exist, in this order, and returns their new names.

    Readers that have one open can continue to read it. If the disk is too full for the longer name, the file is removed
    at once.
    """
    renamed = []
    for path in filter(disk.exists, paths):
        deleted = _unused_name(disk, path)
        try:
            disk.rename(path, deleted)
            renamed.append(deleted)
        except OSError as error:
            if not is_full(error):
                raise
            disk.remove(path)
    return renamed


def _unused_name(disk: Disk, path: str) -> str:
    """A file of the same name may have been renamed before, and its job would remove this one too early."""
    name = path + DELETED
    for number in itertools.count(1):
        if not disk.exists(name):
            break
        name = f"{path}.{number}{DELETED}"
    return name
