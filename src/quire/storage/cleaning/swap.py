"""Putting a cleaned segment in the place of those it was made from, so that a crash at any step does no harm.

    170.log.cleaned  ──▶  170.log.swap                  all files of the new segment; from here on it is valid
    170.log          ──▶  170.log.deleted               each of the old segments, and all that are merged into it
    170.log.swap     ──▶  170.log

These are Kafka's names in Kafka's order, so whoever opens the log next finishes what was begun (see `left_overs`): as
long as anything is `.cleaned` the old segments are whole and the new one is dropped; once everything is `.swap`, what
is left of the old ones goes and the new one takes its name. The files were synced before, and a file system keeps the
order of renames in a folder.
"""

from collections.abc import Callable

from quire.seams import Disk
from quire.storage import file_names

SUFFIXES = (file_names.LOG, *file_names.INDEXES)


def swap_in(disk: Disk, folder: str, base_offset: int, retire_old: Callable[[], None]) -> None:
    paths = [f"{folder}/{file_names.offset_file(base_offset, suffix)}" for suffix in SUFFIXES]
    # Without aborted transactions there is no index of them.
    paths = [path for path in paths if disk.exists(path + file_names.CLEANED)]
    for path in paths:
        disk.rename(path + file_names.CLEANED, path + file_names.SWAP)
    retire_old()
    for path in paths:
        disk.rename(path + file_names.SWAP, path)
