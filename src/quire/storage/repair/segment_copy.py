"""The intact copy of a damaged segment. Its files end in `.cleaned` until they replace the original.

The copy is built from its start on, in jobs, a portion at a time:

    own batches      if the log was never compacted: all that are intact, at the same position as in the original
    Missing(offset)  the next batch is damaged: the caller fetches what another replica has there
    fetched batches  are checked and written, until the original has an intact batch at that position again
    Complete         everything is written and on disk, except the new names

In a log that was never compacted all replicas have the same bytes, so a copy is right if every batch is intact, follows
the one before it, and has the leader epoch that this log has at that offset: no two leaders share an epoch. Because own
batches are kept, two replicas with damage in different batches of the same segment repair each other.

A copy is never read before it replaces the original, and a start removes it. So a crash at any time leaves the damaged
segment, or the complete copy; see `quire.storage.cleaning.swap`.
"""

from bisect import bisect_right
from typing import NamedTuple

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import BatchHeader, check_crc, walk_batches
from quire.seams import Disk, File
from quire.storage.cleaning.cleaned_segment import CleanedSegment
from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from quire.storage.leader_epochs import NO_EPOCH
from quire.storage.log import Log
from quire.storage.producers.end_marker import EndMarker, is_end_marker, read_end_marker
from quire.storage.repair.targets import Target
from quire.storage.scanning import segment_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.batch_walk_native import BatchWalk

PORTION_BYTES = 2 << 20
"""About how much one job copies, and one fetch asks for."""

_POSITION_MAX = 0x7FFFFFFF


class Fetched(NamedTuple):
    """What another replica sent: whole batches from an offset on, maybe with a part of another at the end."""

    source: int
    records: memoryview
    high_watermark: int


class Copied(NamedTuple):
    """Own batches were copied, and there may be more."""

    size_bytes: int


class Missing(NamedTuple):
    """What comes next in the segment is damaged here. Another replica may have it from this offset on."""

    offset: int


class Complete(NamedTuple):
    size: int
    fetched_bytes: int
    lacks_aborted: bool
    """Whether the transaction index of the copy is not complete, because some markers were damaged, too."""


Progress = Copied | Missing | Complete


class SegmentCopy:
    """`work` and `drop` run in jobs, one at a time; they share no state with the event loop."""

    __slots__ = (
        "_aborts",
        "_base_offset",
        "_copy",
        "_disk",
        "_end",
        "_epochs",
        "_fetched_bytes",
        "_folder",
        "_index_path",
        "_log_config",
        "_log_start",
        "_may_have_gaps",
        "_offset",
        "_original",
        "_original_path",
        "_original_size",
    )

    def __init__(self, disk: Disk, log: Log, target: Target, *, may_have_gaps: bool) -> None:
        segment = target.segment
        self._disk = disk
        self._folder = log.path
        self._log_config = log.config
        self._log_start = log.start_offset
        self._epochs = log.epochs.entries
        self._base_offset = self._offset = segment.base_offset
        """`_offset`: what is copied ends before it."""
        self._end = target.end_offset
        self._original_path = segment.path
        self._original_size = segment.size
        self._index_path = segment.transaction_index.path
        self._may_have_gaps = may_have_gaps
        self._original: File | None = None
        self._copy: CleanedSegment | None = None
        self._fetched_bytes = 0
        self._aborts: dict[int, None] = {}
        """The offsets of fetched markers that abort a transaction."""

    def work(self, fetched: Fetched | None = None) -> Progress:
        """Does a part of the work, with what was fetched since `Missing`; ApiError if that is not of use."""
        if self._copy is None:
            self._original = self._disk.open(self._original_path)
            self._copy = CleanedSegment(self._disk, self._folder, self._base_offset, self._log_config)
        if fetched is not None:
            self._take(self._copy, fetched)
        copied = self._copy_own(self._copy, PORTION_BYTES) if self._offset < self._end else 0
        if self._offset >= self._end:
            return self._finish(self._copy)
        return Copied(copied) if copied else Missing(max(self._offset, self._log_start))

    def drop(self) -> None:
        """Releases the files, and removes the copy unless it has replaced the original."""
        self._close_original()
        if self._copy is not None:
            self._copy.close()
            self._copy.remove()
            self._copy = None

    def _finish(self, copy: CleanedSegment) -> Complete:
        aborted, lacks_aborted = self._aborted()
        copy.add_aborted(aborted)
        copy.finish(self._disk.modified_ms(self._original_path))
        self._close_original()
        return Complete(copy.size, self._fetched_bytes, lacks_aborted)

    def _close_original(self) -> None:
        if self._original is not None:
            self._original.close()
            self._original = None

    # --- What this replica has

    def _copy_own(self, copy: CleanedSegment, most_bytes: int) -> int:
        """Copies the intact batches that come next in the original; returns their size."""
        if self._may_have_gaps:
            return 0
        assert self._original is not None
        start = position = copy.size
        while self._offset < self._end and position < min(start + most_bytes, self._original_size):
            reached, self._offset = self._intact_own(position, start + most_bytes)
            if reached == position:
                break
            position = reached
        if position > start:
            copy.append(memoryview(self._original.pread(position - start, start)))
        return position - start

    def _intact_own(self, position: int, enough: int) -> tuple[int, int]:
        """Where the intact batches of one leader epoch from `position` on end, and the offset after them.

        `enough` limits what is read, if there is that much.
        """
        assert self._original is not None
        epoch, limit = self._epoch_at(self._offset)
        walk = BatchWalk(
            self._base_offset,
            index_interval=_POSITION_MAX,
            next_offset=self._offset,
            end_limit=min(limit, self._end),
            gaps_before=0,
            leader_epoch=epoch,
        )
        try:
            size = self._original_size
            reached = segment_scan.scan(self._original, position, size, walk, _OfOneEpoch(epoch), enough=enough)
        except DamagedBatchError as damage:
            reached = damage.position
        return reached, walk.next_offset

    def _epoch_at(self, offset: int) -> tuple[int, int]:
        """The leader epoch at `offset`, -1 if it is unknown, and the offset where the next one begins."""
        after = bisect_right(self._epochs, offset, key=lambda entry: entry[1])
        epoch = self._epochs[after - 1][0] if after else NO_EPOCH
        return epoch, self._epochs[after][1] if after < len(self._epochs) else self._end

    # --- What another replica has

    def _take(self, copy: CleanedSegment, fetched: Fetched) -> None:
        """Writes fetched batches up to the first one that this replica has itself, or to the end of the segment."""
        records = fetched.records
        headers = [each for each in walk_batches(records) if each.last_offset >= self._offset]
        if not headers or headers[0].base_offset >= self._end:
            if not self._may_have_gaps or not (headers or fetched.high_watermark >= self._end):
                raise self._refused(fetched, f"has nothing at offset {self._offset}")
            # Compaction has removed all that there was.
            self._offset = self._end
            return
        for header in headers:
            if self._may_have_gaps and header.base_offset >= self._end:
                self._offset = self._end
                break
            self._check(header, fetched)
            batch = records[header.position : header.end]
            if copy.size + len(batch) > _POSITION_MAX:
                raise self._refused(fetched, "has more than fits into a segment")
            copy.append(batch)
            self._fetched_bytes += len(batch)
            self._offset = header.next_offset
            if is_end_marker(header):
                marker = read_end_marker(records, header)
                if marker is not None and marker.aborts:
                    self._aborts[header.last_offset] = None
            if self._offset >= self._end or self._copy_own(copy, 1):
                break

    def _check(self, header: BatchHeader, fetched: Fetched) -> None:
        """ApiError unless the batch can come next."""
        offset = header.base_offset
        what = f"sent offsets {offset} to {header.last_offset} of epoch {header.leader_epoch}"
        # The log may start in the middle of a batch, and its first segment may lack what was before that.
        may_come_later = self._may_have_gaps or offset <= self._log_start
        if offset < self._offset or header.last_offset_delta < 0 or header.next_offset > self._end:
            raise self._refused(fetched, f"{what} for {self._offset} to {self._end - 1}")
        if offset > self._offset and not may_come_later:
            raise self._refused(fetched, f"{what}, but not {self._offset}")
        epoch, _ = self._epoch_at(offset)
        if epoch not in (NO_EPOCH, header.leader_epoch):
            raise self._refused(fetched, f"{what}, which are of epoch {epoch} here")
        check_crc(fetched.records, header)

    def _refused(self, fetched: Fetched, what: str) -> ApiError:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"broker {fetched.source} {what}")

    # --- Transactions

    def _aborted(self) -> tuple[list[AbortedTransaction], bool]:
        """The entries of the transaction index whose markers are in the copy, and whether some are missing."""
        try:
            known = list(TransactionIndex(self._disk, self._index_path, self._base_offset, IndexCache()))
        except CorruptIndexError:
            return [], True
        if self._may_have_gaps:
            known = [entry for entry in known if entry.last_offset in self._aborts]
        has = {entry.last_offset for entry in known}
        return known, any(offset not in has for offset in self._aborts)


class _OfOneEpoch:
    """Accepts the batches of a log without gaps, as long as they have this leader epoch."""

    __slots__ = ("_epoch",)

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def visit(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        if header.base_offset != expected_offset:
            return f"offset {header.base_offset} instead of {expected_offset}"
        if self._epoch not in (NO_EPOCH, header.leader_epoch):
            return f"leader epoch {header.leader_epoch} instead of {self._epoch}"
        return None

    def visit_producer(self, header: BatchHeader) -> None:
        pass

    def visit_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        pass
