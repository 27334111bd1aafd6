"""The scan of a log after a crash: segment after segment, every batch against those around it.

`Segment.recover` reads, and asks here about each batch that is not a plain continuation, and about each damage. What is
learned on the way, epochs, producers and aborted transactions, is the log's from then on.

A crash tears the end of a log, beyond the recovery point: there the log ends at the first batch that does not fit.
What lay below the recovery point was on disk. If it does not fit it has been damaged since, and so has a batch whose
offset alone is wrong, between two neighbours that leave room for it: a torn write leaves no checksum that matches,
unless it is torn before what the checksum covers. Such a batch is left where it is and
passed over, because the log would otherwise lose all that is intact behind it; the check before the first serving
(`range_check`) finds it again and refuses it.

No checksum covers a batch's offset and leader epoch, but the batch behind it bears witness: both only rise. Where one
of them rises further than it has to, that witness is heard before the batch is believed.
"""

from quire.protocol.records.batch import CHECKED_FROM, HEADER_BYTES, BatchHeader, read_header
from quire.storage.batch_scan import DamagedBatchError
from quire.storage.batch_walk_native import BatchWalk
from quire.storage.damage import next_intact
from quire.storage.end_marker import EndMarker
from quire.storage.leader_epochs import NO_EPOCH, LeaderEpochs
from quire.storage.log_config import LogConfig
from quire.storage.neighbours import intact_at, only_its_offset_is_wrong
from quire.storage.producer_state import ProducerState
from quire.storage.segment import Segment

MAX_OFFSET = (1 << 63) - 1
SECTOR = 512
"""What a disk writes as a whole, or a part of that."""


class RecoveryScan:
    """`log_recovery`'s. With `only_torn` nothing is passed over: the caller wants to know of any damage."""

    def __init__(
        self,
        config: LogConfig,
        epochs: LeaderEpochs,
        producers: ProducerState,
        recovery_point: int,
        *,
        only_torn: bool,
        may_have_gaps: bool,
        epochs_on_disk: LeaderEpochs,
    ) -> None:
        """`epochs` are those before the scan begins, `epochs_on_disk` those of the file, up to the recovery point."""
        self._config = config
        self._epochs = epochs
        self._epochs_on_disk = epochs_on_disk
        self._producers = producers
        self._recovery_point = recovery_point
        self._only_torn = only_torn
        self._may_have_gaps = may_have_gaps
        self.damaged_at_end = False
        """Whether the last segment has something at its end that was on disk once and is damaged."""

    def run(
        self, segment: Segment, next_offset: int, following: Segment | None
    ) -> tuple[int, DamagedBatchError | None]:
        """Scans a segment; where it ends, and at which damage if it had to."""
        self._segment = segment
        self._following = following
        self._walk = BatchWalk(
            segment.base_offset,
            self._config.index_interval_bytes,
            next_offset=next_offset,
            end_limit=following.base_offset if following is not None else MAX_OFFSET,
            gaps_before=MAX_OFFSET if self._may_have_gaps else self._recovery_point,
            leader_epoch=self._epochs.latest,
        )
        self.damaged_at_end = False
        damage = segment.recover(self._walk, self)
        return self._walk.next_offset, damage

    # What the scan meets

    def meet(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        """Takes the epoch of an intact batch into account, or says why it cannot come next."""
        offset, latest_epoch = header.base_offset, self._epochs.latest
        may_come_later = offset <= self._recovery_point or self._may_have_gaps
        if offset < expected_offset or (offset > expected_offset and not may_come_later):
            # Without compaction offsets have no gaps, but one may be left from when the topic was compacted.
            return f"offset {offset} follows {expected_offset - 1}"
        if 0 <= header.leader_epoch < latest_epoch:
            return f"leader epoch {header.leader_epoch} follows {latest_epoch}"
        if offset == expected_offset and header.leader_epoch == latest_epoch:
            return None
        behind = self._behind(header, position)
        if offset > expected_offset:
            if behind is not None and only_its_offset_is_wrong(header, expected_offset, behind):
                return f"its offset is {offset}, that behind it {behind.base_offset}"
            if expected_offset < self._recovery_point < header.next_offset and offset != self._recovery_point:
                # A flush ends with a batch, and what is compacted is not appended to.
                return f"offset {offset} follows {expected_offset - 1}, but {self._recovery_point - 1} was on disk"
        if header.leader_epoch > latest_epoch:
            if expected_offset < self._recovery_point and self._is_too_late(header, behind):
                return f"its leader epoch is {header.leader_epoch}"
            self._epochs.assign(header.leader_epoch, offset)
        return None

    def _is_too_late(self, header: BatchHeader, behind: BatchHeader | None) -> bool:
        """Whether a batch that was on disk cannot be of this new leader: the one behind it knows, or else the file."""
        if behind is not None:
            return self._epochs.latest <= behind.leader_epoch < header.leader_epoch
        known = self._epochs_on_disk.epoch_of(header.base_offset)
        return known not in (NO_EPOCH, header.leader_epoch)

    def _behind(self, header: BatchHeader, position: int) -> BatchHeader | None:
        """The header of the batch behind this one; None if there is none that is intact."""
        segment, following = self._segment, self._following
        if position + header.size < segment.size:
            return intact_at(segment.file, position + header.size, segment.size)
        return intact_at(following.file, 0, following.size) if following is not None else None

    def meet_producer(self, header: BatchHeader) -> None:
        self._producers.update(header)

    def meet_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        aborted = self._producers.end_transaction(header, marker)
        if aborted is not None:
            self._segment.add_aborted(aborted)

    def pass_over(self, damage: DamagedBatchError) -> int | None:
        """Where to go on behind something damaged; None if the log ends there."""
        if self._only_torn:
            return None
        segment, walk = self._segment, self._walk
        header = intact_at(segment.file, damage.position, segment.size)
        if header is not None and header.leader_epoch >= self._epochs.latest:
            behind = self._behind(header, damage.position)
            may_be_torn = walk.next_offset >= self._recovery_point and _ends_a_sector_unchecked(damage.position)
            if behind is not None and not may_be_torn and only_its_offset_is_wrong(header, walk.next_offset, behind):
                is_last = damage.position + header.size == segment.size
                walk.next_offset += header.last_offset_delta + 1
                if is_last and self._following is not None:
                    walk.next_offset = self._following.base_offset
                return damage.position + header.size
        if walk.next_offset >= self._recovery_point:
            return None
        position = next_intact(segment.file, damage.position, segment.size, walk.next_offset)
        if position is None:
            self.damaged_at_end = True
            return segment.size
        offset = read_header(segment.file.pread(HEADER_BYTES, position)).base_offset
        return position if offset <= self._recovery_point or self._may_have_gaps else None


def _ends_a_sector_unchecked(position: int) -> bool:
    """Whether a crash could have kept of a batch all that is checked: every sector but the one that it begins in.

    What was there before, zeros mostly, then stands for its offset. Its length has zeros of its own to begin with.
    """
    return position // SECTOR != (position + CHECKED_FROM) // SECTOR
