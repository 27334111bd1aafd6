"""The work of one round of cleaning: a generator, so that it can be done in pieces, each of them a job.

    learn     the keys of the dirty part, until the table is full or all are known
    filter    segments from the log's start up to there, neighbours together, into a cleaned segment each
              ── `Ready` ──▶ the event loop puts it in their place ──▶ the folder is synced ──▶ the next ones

Nothing here touches what the event loop decides on: files are opened anew, and segments are only asked for what does
not change any more. Damage is an ApiError, and until it shows nothing was replaced that it could have led astray.
"""

from collections.abc import Generator
from typing import NamedTuple

from quire.seams import Disk
from quire.storage.cleaning.cleaned_segment import CleanedSegment
from quire.storage.cleaning.filtering import Filtering
from quire.storage.cleaning.grouping import Source, group
from quire.storage.cleaning.learning import Learning
from quire.storage.cleaning.round import Round


class Worked(NamedTuple):
    """So many bytes were read and written since the last word."""

    size_bytes: int


class Ready(NamedTuple):
    """What is left of these segments of the round (from slot to slot) is complete and on disk."""

    start: int
    stop: int
    cleaned: CleanedSegment


class Cleaned(NamedTuple):
    """The round is over, and the log clean before `end_offset`."""

    end_offset: int


Event = Worked | Ready | Cleaned


class Work:
    def __init__(self, disk: Disk, this: Round) -> None:
        self._disk = disk
        self._this = this
        self._cleaned: CleanedSegment | None = None
        self._steps = self._run()

    def step(self) -> Event:
        """A little of it. `Cleaned` is the last word."""
        return next(self._steps)

    def drop(self) -> None:
        """Lets go of files and memory, and removes what was not put in place."""
        self._steps.close()
        if self._cleaned is not None:
            self._cleaned.close()
            self._cleaned.remove()
            self._cleaned = None

    def _run(self) -> Generator[Event, None, None]:
        disk, this = self._disk, self._this
        aborted = this.read_aborted(disk)
        learning = Learning(disk, this, aborted)
        for size_bytes in learning.run():
            yield Worked(size_bytes)
        filtering = Filtering(disk, this, aborted, learning.table, learning.latest_offset)
        start = 0
        sources = _sources(disk, this, learning.latest_offset)
        for members in group(sources, this.config.segment_bytes, this.config.segment_index_bytes):
            stop = start + len(members)
            cleaned = self._cleaned = CleanedSegment(disk, this.folder, members[0].base_offset, this.config)
            for size_bytes in filtering.run(this.segments[start:stop], cleaned):
                yield Worked(size_bytes)
            cleaned.finish(disk.modified_ms(this.segments[stop - 1].path))
            yield Ready(start, stop, cleaned)
            self._cleaned = None
            # Before the next one is begun: no two swaps are ever half done.
            disk.sync_dir(this.folder)
            start = stop
        yield Cleaned(learning.latest_offset + 1)


def _sources(disk: Disk, this: Round, latest_offset: int) -> list[Source]:
    return [
        Source(
            segment.base_offset,
            end_offset,
            segment.size,
            _size(disk, segment.offset_index.path),
            _size(disk, segment.time_index.path),
        )
        for segment, end_offset in zip(this.segments, this.end_offsets, strict=True)
        if segment.base_offset <= latest_offset
    ]


def _size(disk: Disk, path: str) -> int:
    return disk.file_size(path) if disk.exists(path) else 0
