"""An empty file that says: what is beside the segment before this offset may not be on disk.

A start after a crash scans nothing before the recovery point. If everything was on disk when a segment was completed,
that point is where the next segment begins, while the indexes of the completed one have only just been written: a power
loss could leave them empty or half as long, and nobody would look. So such a roll makes this file first, the flush that
brings the indexes to disk removes it, and a start that finds it makes the indexes before it anew. So does a start that
has to make missing indexes of a segment that it does not scan. It relies on a folder keeping the order in which its
names change, as the swaps of compaction do.

`00000000000000000170.rolled.tmp`: Apache Kafka takes no notice of it.
"""

from collections.abc import Iterable

from quire.seams import Disk
from quire.storage import file_names

_KIND = ".rolled"


def make_mark(disk: Disk, folder: str, base_offset: int) -> str:
    """Before anything beside the segment before `base_offset` is written, and the one there is begun."""
    path = f"{folder}/{file_names.offset_file(base_offset, _KIND)}{file_names.TEMPORARY}"
    disk.open(path, create=True).close()
    return path


def is_mark(name: str) -> bool:
    return name.endswith(_KIND + file_names.TEMPORARY)


def remove_marks(disk: Disk, paths: Iterable[str]) -> None:
    """What they speak of is on disk. May run in a job, when the log itself may be deleted already."""
    for path in paths:
        if disk.exists(path):
            disk.remove(path)


def marked_offsets(names: Iterable[str]) -> list[int]:
    """Where segments begin before which the indexes are not to be believed."""
    parsed = [file_names.parse_offset_file(name.removesuffix(file_names.TEMPORARY)) for name in filter(is_mark, names)]
    return [mark[0] for mark in parsed if mark is not None]
