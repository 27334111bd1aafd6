"""Rebuilds the indexes of a large segment in a job, after a look-up has found them wrong.

A look-up with `in_job` raises `NotCheckedError` with this rebuild in place of a check (see
`quire.storage.scanning.range_check`): `run` in a job reads the headers of all batches, `finish` on the event loop takes
the new indexes into use, and the look-up is repeated. Other look-ups, and those in small segments, rebuild at once.
"""

from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment.indexing import SegmentIndexing


class _Scratch(SegmentIndexing):
    """Collects entries in memory, and has no files of its own."""

    __slots__ = ("damages",)

    damages: list[DamagedBatchError]

    def report(self, damage: DamagedBatchError) -> None:
        self.damages.append(damage)


class IndexRebuild:
    __slots__ = ("_reason", "_scratch", "_segment")

    def __init__(self, segment: SegmentIndexing, reason: CorruptIndexError) -> None:
        self._segment = segment
        self._reason = reason
        self._scratch = segment.twin(_Scratch, IndexCache())
        self._scratch.damages = []

    @property
    def subject(self) -> str:
        return f"the indexes of {self._segment.path} with {self._scratch.size} bytes"

    def run(self) -> None:
        """Blocks until the whole segment is read."""
        self._scratch.index_all()

    def finish(self) -> None:
        """Takes the indexes into use, unless the segment was truncated, deleted or replaced meanwhile."""
        segment, scratch = self._segment, self._scratch
        if segment.size != scratch.size or segment.offset_index.pinned or segment.is_retired:
            return
        segment.take_indexes(scratch, self._reason)
        for damage in scratch.damages:
            segment.report(damage)
