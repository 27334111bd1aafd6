"""Segments that are no longer part of the log, but still on disk."""

from collections.abc import Callable
from contextlib import suppress

from quire.seams import Disk
from quire.storage.segment import Segment


class RetiredSegments:
    """Segments whose files are renamed to `.deleted`; readers may still have them open.

    A job calls `remove` after `file.delete.delay.ms`. If it never runs, the next start removes the files.
    """

    __slots__ = ("_abandoned", "_disk", "_paths", "_segments")

    def __init__(self, disk: Disk, segments: list[Segment]) -> None:
        """`segments` in an order in which a crash at any point leaves a log without a hole."""
        self._disk = disk
        self._segments = segments
        self._paths = [path for segment in segments for path in segment.retire()]
        self._abandoned = False

    def abandon_in(self, folder: str) -> None:
        """The log in this folder was deleted: the files are now elsewhere, and another log may have their names."""
        self._abandoned |= any(path.rpartition("/")[0] == folder for path in self._paths[:1])

    def close_files(self) -> None:
        for segment in self._segments:
            segment.close()

    def remove(self) -> None:
        self.close_files()
        for path in self._paths:
            if self._abandoned:
                return
            # It is missing if the log is being deleted.
            with suppress(FileNotFoundError):
                self._disk.remove(path)


Remover = Callable[[RetiredSegments, int], None]
"""Schedules `remove` after so many milliseconds (`file.delete.delay.ms`); on a node, in a job."""


def remove_now(retired: RetiredSegments, delay_ms: int) -> None:
    """For tools and tests, which have no readers."""
    retired.remove()
