"""Replacing segments by the cleaned one, so that a crash at any step does no harm.

    170.log.cleaned  ──▶  170.log.swap                  all files of the new segment; from here on it is valid
    170.log          ──▶  170.log.deleted               each of the old segments
    170.log.swap     ──▶  170.log

These are Kafka's names in Kafka's order, so the next start of Quire or Kafka completes an interrupted swap (see
`left_overs`). While any file is `.cleaned`, the old segments are complete, and the new one is removed. Once all are
`.swap`, the rest of the old segments is removed and the new one gets its name. The files were synced before, and a file
system keeps the order of renames in a folder.
"""

from collections.abc import Callable

from quire.seams import Disk
from quire.storage import file_names

SUFFIXES = (file_names.LOG, *file_names.INDEXES)


def swap_in(disk: Disk, folder: str, base_offset: int, retire_old: Callable[[], None]) -> None:
    paths = [f"{folder}/{file_names.offset_file(base_offset, suffix)}" for suffix in SUFFIXES]
    # Without aborted transactions there is no transaction index.
    paths = [path for path in paths if disk.exists(path + file_names.CLEANED)]
    for path in paths:
        disk.rename(path + file_names.CLEANED, path + file_names.SWAP)
    retire_old()
    for path in paths:
        disk.rename(path + file_names.SWAP, path)
