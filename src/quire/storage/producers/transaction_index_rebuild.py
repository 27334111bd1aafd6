"""Rebuilds the transaction index of a large segment in a job, after a read has found it wrong.

As `quire.storage.segment.index_rebuild`: `run` in a job replays the producers from the newest snapshot on, `finish` on
the event loop takes the index into use. If the snapshot cannot be read, `finish` removes it, and the next read needs a
rebuild that begins further back.
"""

from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.producers.producer_replay import replay, take_transaction_index
from quire.storage.producers.producer_snapshot import ProducerSnapshots
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment import Segment
from quire.storage.segment.lookup import SegmentLookup
from quire.storage.segments import Segments


class _Twin(SegmentLookup):
    """Reads the same file, and leaves the indexes and what is known of damage to the event loop."""

    __slots__ = ()

    def report(self, damage: DamagedBatchError) -> None:
        pass  # A fetch of the batch reports it.

    def rebuild_indexes(self, reason: Exception) -> None:
        self.index_all()


class TransactionIndexRebuild:
    __slots__ = ("_aborted", "_end_offset", "_reason", "_segment", "_snapshot", "_twins")

    def __init__(
        self,
        segments: Segments,
        snapshots: ProducerSnapshots,
        segment: Segment,
        end_offset: int,
        reason: CorruptIndexError,
    ) -> None:
        """The segment ends at `end_offset`."""
        self._segment = segment
        self._end_offset = end_offset
        self._reason = reason
        self._snapshot = snapshots.loader(segment.base_offset)
        first_offset = segments[0].base_offset if self._snapshot.offset is None else self._snapshot.offset
        self._twins = [each.twin(_Twin, IndexCache()) for each in segments.between(first_offset, end_offset)]
        self._aborted: list[AbortedTransaction] | None = None

    @property
    def subject(self) -> str:
        return f"the transaction index of {self._segment.path} from offset {self._twins[0].base_offset} on"

    def run(self) -> None:
        """Blocks until all segments from the snapshot on are read."""
        state = self._snapshot.run()
        if state is None:
            return
        base_offset = self._segment.base_offset
        for twin in self._twins[:-1]:
            replay(state, twin, max(twin.base_offset, self._snapshot.offset or 0), base_offset)
        self._aborted = replay(state, self._twins[-1], base_offset, self._end_offset)

    def finish(self) -> None:
        """Takes the index into use, unless the segment was truncated, deleted or replaced meanwhile."""
        self._snapshot.finish()
        segment = self._segment
        changed = segment.size != self._twins[-1].size or segment.offset_index.pinned or segment.is_retired
        if self._aborted is not None and not changed:
            take_transaction_index(segment, self._aborted, self._reason)
