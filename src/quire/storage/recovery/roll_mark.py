"""An empty file which says that the indexes of the segment before this offset may not be on disk.

A start after a crash scans nothing before the recovery point. If everything was on disk when a segment was completed,
the recovery point is the start of the next segment, but the indexes of the completed one were only just written. A
power loss could leave them empty or torn, and no scan would notice. So such a roll creates this file first, the flush
that syncs the indexes removes it, and a start that finds it rebuilds the indexes before it. A start that rebuilds
missing indexes of a segment without scanning it creates the file, too. This relies on the file system to keep the order
in which names in a folder change, as do the swaps of compaction.

`00000000000000000170.rolled.tmp`: Apache Kafka ignores it.
"""

from collections.abc import Iterable

from quire.seams import Disk
from quire.storage import file_names

_KIND = ".rolled"


def make_mark(disk: Disk, folder: str, base_offset: int) -> str:
    """Creates the mark, before the indexes of the completed segment and the segment at `base_offset` are written."""
    path = f"{folder}/{file_names.offset_file(base_offset, _KIND)}{file_names.TEMPORARY}"
    disk.open(path, create=True).close()
    return path


def is_mark(name: str) -> bool:
    return name.endswith(_KIND + file_names.TEMPORARY)


def remove_marks(disk: Disk, paths: Iterable[str]) -> None:
    """Called on the event loop when the indexes are on disk."""
    for path in paths:
        if disk.exists(path):
            disk.remove(path)


def marked_offsets(names: Iterable[str]) -> list[int]:
    """The base offsets of segments whose predecessor's indexes cannot be trusted."""
    parsed = [file_names.parse_offset_file(name.removesuffix(file_names.TEMPORARY)) for name in filter(is_mark, names)]
    return [mark[0] for mark in parsed if mark is not None]
