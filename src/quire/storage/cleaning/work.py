"""The work of one cleaning run: a generator, so that it can run in steps, each of them in a job.

    map       the keys of the dirty part to their last offsets, until all are mapped or the table is full
    filter    the segments from the log's start up to there, each group of adjacent ones into one cleaned segment
              ── `Ready` ──▶ the event loop replaces the originals ──▶ the folder is synced ──▶ the next group

Jobs share no state with the event loop: they open files of their own, and read only fields of segments that no longer
change. Damage raises an ApiError. Every batch is checked before it is used, so damage cannot cause a wrong replacement.
"""

from collections.abc import Generator
from typing import NamedTuple

from quire.seams import Disk
from quire.storage.cleaning.cleaned_segment import CleanedSegment
from quire.storage.cleaning.cleaning_run import CleaningRun
from quire.storage.cleaning.filtering import Filtering
from quire.storage.cleaning.grouping import Source, group
from quire.storage.cleaning.offset_map_builder import OffsetMapBuilder


class Worked(NamedTuple):
    """`size_bytes` were read and written since the last report."""

    size_bytes: int


class Ready(NamedTuple):
    """The cleaned copy of the run's segments from slot `start` to `stop` is complete and on disk."""

    start: int
    stop: int
    cleaned: CleanedSegment


class Cleaned(NamedTuple):
    """The run is complete, and the log is clean before `end_offset`."""

    end_offset: int


Progress = Worked | Ready | Cleaned
"""What a step reports to the event loop."""


class Work:
    def __init__(self, disk: Disk, run: CleaningRun) -> None:
        self._disk = disk
        self._run = run
        self._cleaned: CleanedSegment | None = None
        self._steps = self._work()

    def step(self) -> Progress:
        """Does a little of the work. `Cleaned` is the last report."""
        return next(self._steps)

    def drop(self) -> None:
        """Releases files and memory, and removes a cleaned segment that did not replace its originals."""
        self._steps.close()
        if self._cleaned is not None:
            self._cleaned.close()
            self._cleaned.remove()
            self._cleaned = None

    def _work(self) -> Generator[Progress, None, None]:
        disk, run = self._disk, self._run
        aborted = run.read_aborted(disk)
        builder = OffsetMapBuilder(disk, run, aborted)
        for size_bytes in builder.run():
            yield Worked(size_bytes)
        filtering = Filtering(disk, run, aborted, builder.table, builder.latest_offset)
        start = 0
        sources = _sources(disk, run, builder.latest_offset)
        for members in group(sources, run.config.segment_bytes, run.config.segment_index_bytes):
            stop = start + len(members)
            cleaned = self._cleaned = CleanedSegment(disk, run.folder, members[0].base_offset, run.config)
            for size_bytes in filtering.run(run.segments[start:stop], cleaned):
                yield Worked(size_bytes)
            cleaned.finish(disk.modified_ms(run.segments[stop - 1].path))
            yield Ready(start, stop, cleaned)
            self._cleaned = None
            # Before the next group, so that a crash never finds two incomplete swaps.
            disk.sync_dir(run.folder)
            start = stop
        yield Cleaned(builder.latest_offset + 1)


def _sources(disk: Disk, run: CleaningRun, latest_offset: int) -> list[Source]:
    return [
        Source(
            segment.base_offset,
            end_offset,
            segment.size,
            _size(disk, segment.offset_index.path),
            _size(disk, segment.time_index.path),
        )
        for segment, end_offset in zip(run.segments, run.end_offsets, strict=True)
        if segment.base_offset <= latest_offset
    ]


def _size(disk: Disk, path: str) -> int:
    return disk.file_size(path) if disk.exists(path) else 0
