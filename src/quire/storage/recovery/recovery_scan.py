"""The scan of a log after a crash: segment by segment, comparing every batch with those around it.

`Segment.recover` reads the batches, and calls this visitor for each batch that is not a plain continuation and for each
damage. The scan also collects the epochs, producers and aborted transactions of the log.

A crash tears the end of a log, beyond the recovery point. There the log ends at the first batch that does not fit. What
is below the recovery point was on disk, so a batch there that does not fit has been damaged since. The same is true of
a batch between two others that leave room for it, if only its offset is wrong: a torn write leaves no matching
checksum, unless it is torn before the bytes that the checksum covers. Such a batch is skipped and stays in the file,
because truncating there would lose intact batches after it. The check before the first read (`range_check`) finds it
again and refuses it.

If the process was killed and the page cache is the same, only the last append may be torn. Then the same is true of
what was committed beyond the recovery point, if an intact batch follows it.

Such a batch may be the marker of an aborted transaction, or have records of one. Its other records are still served,
and are all served once the segment is repaired. So what the transaction index of the segment says is kept, as far as
the markers that the scan has seen do not contradict it.

No checksum covers a batch's offset and leader epoch, but both only rise. If one of them rises by more than expected,
the scan consults the next batch before it accepts this one.
"""

from collections.abc import Iterable

from quire.protocol.records.batch import CHECKED_FROM, HEADER_BYTES, BatchHeader, read_header
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.leader_epochs import NO_EPOCH, LeaderEpochs
from quire.storage.log_config import LogConfig
from quire.storage.producers.end_marker import EndMarker
from quire.storage.producers.producer_state import ProducerState
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.batch_walk_native import BatchWalk
from quire.storage.scanning.damage import next_intact
from quire.storage.scanning.neighbours import intact_at, only_its_offset_is_wrong
from quire.storage.segment import Segment

MAX_OFFSET = (1 << 63) - 1
SECTOR = 512
"""A disk writes this many bytes, or a multiple, atomically."""


class RecoveryScan:
    """Used by `log_recovery`. With `only_torn` nothing is passed over: the caller has to know of any damage."""

    def __init__(
        self,
        config: LogConfig,
        epochs: LeaderEpochs,
        producers: ProducerState,
        recovery_point: int,
        *,
        written_before: int,
        only_torn: bool,
        may_have_gaps: bool,
        epochs_on_disk: LeaderEpochs,
    ) -> None:
        """`epochs` are those before the scan begins, `epochs_on_disk` those of the file, up to the recovery point.

        Everything before `written_before` was written completely, and no power loss can have taken any of it.
        """
        self._config = config
        self._epochs = epochs
        self._epochs_on_disk = epochs_on_disk
        self._producers = producers
        self._recovery_point = recovery_point
        self._written_before = max(recovery_point, written_before)
        self._only_torn = only_torn
        self._may_have_gaps = may_have_gaps
        self._passed_over: list[tuple[int, int]] = []
        """The first offset of each damage in the segment, and that of the next intact batch."""
        self._abort_markers: dict[int, int] = {}
        """Those that were seen in the segment: the producer at each offset."""
        self.damaged_at_end = False
        """Whether the last segment ends with bytes that were on disk and are damaged now."""

    def run(
        self, segment: Segment, next_offset: int, following: Segment | None
    ) -> tuple[int, DamagedBatchError | None]:
        """Scans a segment; returns the offset where it ends, and the damage that ended it, if any."""
        self._segment = segment
        self._following = following
        self._walk = BatchWalk(
            segment.base_offset,
            self._config.index_interval_bytes,
            next_offset=next_offset,
            end_limit=following.base_offset if following is not None else MAX_OFFSET,
            gaps_before=MAX_OFFSET if self._may_have_gaps else self._written_before,
            leader_epoch=self._epochs.latest,
        )
        self.damaged_at_end = False
        self._passed_over.clear()
        self._abort_markers.clear()
        damage = segment.recover(self._walk, self)
        if self._passed_over:
            segment.keep_aborted(self._confirmed(segment.aborted_in_file()))
        return self._walk.next_offset, damage

    # --- What the scan meets

    def visit(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        """Records the epoch of an intact batch, or returns why the batch cannot come next."""
        offset, latest_epoch = header.base_offset, self._epochs.latest
        may_come_later = offset <= self._written_before or self._may_have_gaps
        if offset < expected_offset or (offset > expected_offset and not may_come_later):
            # Without compaction offsets have no gaps, but the topic may have been compacted earlier.
            return f"offset {offset} follows {expected_offset - 1}"
        if 0 <= header.leader_epoch < latest_epoch:
            return f"leader epoch {header.leader_epoch} follows {latest_epoch}"
        if offset == expected_offset and header.leader_epoch == latest_epoch:
            return None
        following = self._next_header(header, position)
        if offset > expected_offset:
            if following is not None and only_its_offset_is_wrong(header, expected_offset, following):
                return f"its offset is {offset}, the next one {following.base_offset}"
            if expected_offset < self._recovery_point < header.next_offset and offset != self._recovery_point:
                # A flush ends at the end of a batch, and a compacted segment is not appended to.
                return f"offset {offset} follows {expected_offset - 1}, but {self._recovery_point - 1} was on disk"
        if header.leader_epoch > latest_epoch:
            if expected_offset < self._recovery_point and self._is_too_late(header, following):
                return f"its leader epoch is {header.leader_epoch}"
            self._epochs.assign(header.leader_epoch, offset)
        return None

    def _is_too_late(self, header: BatchHeader, following: BatchHeader | None) -> bool:
        """Whether the leader epoch of a batch that was on disk is too high, by the next batch or else by the file."""
        if following is not None:
            return self._epochs.latest <= following.leader_epoch < header.leader_epoch
        known = self._epochs_on_disk.epoch_of(header.base_offset)
        return known not in (NO_EPOCH, header.leader_epoch)

    def _next_header(self, header: BatchHeader, position: int) -> BatchHeader | None:
        """The header of the next batch; None if there is none that is intact."""
        segment, following = self._segment, self._following
        if position + header.size < segment.size:
            return intact_at(segment.file, position + header.size, segment.size)
        return intact_at(following.file, 0, following.size) if following is not None else None

    def visit_producer(self, header: BatchHeader) -> None:
        self._producers.update(header)

    def visit_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        if marker.aborts:
            self._abort_markers[header.last_offset] = header.producer_id
        aborted = self._producers.end_transaction(header, marker)
        if aborted is not None:
            self._segment.add_aborted(aborted)

    def skip_damaged(self, damage: DamagedBatchError) -> int | None:
        """The position at which to continue after damage; None if the log ends there."""
        first_offset = self._walk.next_offset
        position = None if self._only_torn else self._position_after(damage)
        if position is not None:
            next_offset = self._offset_at(position)
            self._passed_over.append((first_offset, next_offset))
            for aborted in self._segment.aborted_in_file():
                if first_offset <= aborted.last_offset < next_offset:
                    self._producers.ended_unseen(aborted.producer_id)
        return position

    def _offset_at(self, position: int) -> int:
        """Where the batch begins at which the scan continues."""
        segment, following = self._segment, self._following
        if position < segment.size:
            return read_header(segment.file.pread(HEADER_BYTES, position)).base_offset
        return MAX_OFFSET if following is None else following.base_offset

    def _confirmed(self, aborted: Iterable[AbortedTransaction]) -> list[AbortedTransaction]:
        """Those whose markers were seen, or are damaged."""
        return [
            each
            for each in aborted
            if self._abort_markers.get(each.last_offset) == each.producer_id
            or any(first <= each.last_offset < behind for first, behind in self._passed_over)
        ]

    def _position_after(self, damage: DamagedBatchError) -> int | None:
        segment, walk = self._segment, self._walk
        header = intact_at(segment.file, damage.position, segment.size)
        if header is not None and header.leader_epoch >= self._epochs.latest:
            following = self._next_header(header, damage.position)
            may_be_torn = walk.next_offset >= self._written_before and _ends_a_sector_unchecked(damage.position)
            if (
                following is not None
                and not may_be_torn
                and only_its_offset_is_wrong(header, walk.next_offset, following)
            ):
                is_last = damage.position + header.size == segment.size
                walk.next_offset += header.last_offset_delta + 1
                if is_last and self._following is not None:
                    walk.next_offset = self._following.base_offset
                return damage.position + header.size
        if walk.next_offset >= self._written_before:
            return None
        was_on_disk = walk.next_offset < self._recovery_point
        position = next_intact(segment.file, damage.position, segment.size, walk.next_offset)
        if position is None:
            self.damaged_at_end = was_on_disk
            return segment.size if was_on_disk or self._continues_as_written() else None
        offset = read_header(segment.file.pread(HEADER_BYTES, position)).base_offset
        may_have_gaps = self._may_have_gaps and was_on_disk
        return position if offset <= self._written_before or may_have_gaps else None

    def _continues_as_written(self) -> bool:
        return self._following is not None and self._following.base_offset <= self._written_before


def _ends_a_sector_unchecked(position: int) -> bool:
    """Whether a crash may have kept all bytes of a batch that its checksum covers, and lost the sector it begins in.

    The offset is then read from what was there before, mostly zeros. The length also begins with zeros.
    """
    return position // SECTOR != (position + CHECKED_FROM) // SECTOR
