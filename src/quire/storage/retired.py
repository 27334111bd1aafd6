"""Segments that left the log but not yet the disk."""

from collections.abc import Callable
from contextlib import suppress

from quire.seams import Disk
from quire.storage.segment import Segment


class RetiredSegments:
    """Segments whose files are renamed to `.deleted`; readers may still be in them.

    `remove` is for a job, some while later. If it never runs, the next start of the log removes the files.
    """

    __slots__ = ("_disk", "_paths", "_segments")

    def __init__(self, disk: Disk, segments: list[Segment]) -> None:
        """`segments` in the order in which a crash may let them go: what is left must be without a hole."""
        self._disk = disk
        self._segments = segments
        self._paths = [path for segment in segments for path in segment.retire()]

    def close_files(self) -> None:
        for segment in self._segments:
            segment.close()

    def remove(self) -> None:
        self.close_files()
        for path in self._paths:
            # Gone if the log was deleted, or if a segment that had the same name was retired and removed meanwhile.
            with suppress(FileNotFoundError):
                self._disk.remove(path)


Remover = Callable[[RetiredSegments, int], None]
"""Sees to it that `remove` runs, so many milliseconds (`file.delete.delay.ms`) from now: in a job, on a node."""


def remove_now(retired: RetiredSegments, delay_ms: int) -> None:
    """For tools and tests: no reader is left behind."""
    retired.remove()
