"""The leader epochs of a log that is being opened: from their file, or from the batches if the file is unusable."""

import logging

from quire.seams import Disk
from quire.storage import leader_epochs
from quire.storage.directory.checkpoints import CheckpointError
from quire.storage.leader_epochs import LeaderEpochs, read_epochs
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment import Segment
from quire.storage.segments import Segments

_log = logging.getLogger("quire.storage")


class EpochRecovery:
    def __init__(self, disk: Disk, folder: str, names: frozenset[str]) -> None:
        self._folder = folder
        self._known = False
        self.epochs = LeaderEpochs()
        if leader_epochs.FILE_NAME in names:
            try:
                self.epochs = read_epochs(disk, folder)
                self._known = bool(self.epochs.entries)
            except CheckpointError as error:
                _log.warning("finding the leader epochs in the log itself: %s", error)
        self.saved = self.epochs.to_bytes()
        """The epochs in the file, which may have too few or too many."""

    def before_scan(self, segments: Segments, first: Segment) -> LeaderEpochs:
        """Leaves the epochs before the segment `first`, with which a scan begins; returns those of the file."""
        on_disk = LeaderEpochs(self.epochs.entries)
        self.find_before(segments, first.base_offset)
        if not self._is_below_known(first):
            return on_disk
        # Either the file or this batch is wrong. The log before it decides, and nothing is cut because of the file.
        _log.warning("finding the leader epochs of %s in the log itself: its file contradicts it", self._folder)
        self.epochs, self._known = LeaderEpochs(), False
        self.find_before(segments, first.base_offset)
        return LeaderEpochs()

    def find_before(self, segments: Segments, end_offset: int) -> None:
        """Drops epochs at or after `end_offset`, which a scan finds; reads the log before it if there is no file."""
        if self._known:
            self.epochs.truncate_from_end(end_offset)
            return
        self._known = True
        try:
            for segment in segments.between(segments[0].base_offset, end_offset):
                for _, header in batch_scan.headers(segment.file, 0, segment.size):
                    if header.leader_epoch > self.epochs.latest:
                        self.epochs.assign(header.leader_epoch, header.base_offset)
        except DamagedBatchError as error:
            _log.error("leader epochs after a damaged batch are lost: %s", error)

    def _is_below_known(self, first: Segment) -> bool:
        """Whether the segment begins with an older leader's batch than the epochs before it allow."""
        try:
            _, header = next(batch_scan.headers(first.file, 0, first.size))
        except (DamagedBatchError, StopIteration):
            return False
        return 0 <= header.leader_epoch < self.epochs.latest
