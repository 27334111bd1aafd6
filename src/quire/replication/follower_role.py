"""The follower's side of a partition: copies the leader's log, and truncates what the leader does not have.

A `FollowerRole` is one leader epoch on a replica that does not lead. A fetcher of the node (`quire.node.replicas`) asks
`fetch_position` where to continue, and passes on what the leader answers:

    records             `append` checks them and writes them as they are
    a diverging epoch   `truncation_offset` says how much of the log both have; the node truncates the rest
    high watermark      `leader_committed`

The next fetch tells the leader that everything before its offset is in this log. With `flush.messages` that must be on
disk by then, so `may_fetch` is false while a flush that is due has not ended. A crash anywhere leaves a log that is
shorter than what was fetched, and the next fetch begins at its end.
"""

from typing import TYPE_CHECKING

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import HEADER_BYTES, BatchHeader, check_crc, read_header, walk_batches
from quire.replication import settings

if TYPE_CHECKING:
    from quire.replication.partition import Partition
    from quire.storage import Log


class FollowerRole:
    """One leader epoch on a replica that does not lead. `Partition.become_follower` makes it."""

    __slots__ = ("_awaits_flush", "leader_epoch", "leader_id", "log", "partition")

    def __init__(self, partition: "Partition", leader_id: int, leader_epoch: int) -> None:
        self.partition = partition
        self.log = partition.log
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self._awaits_flush = False

    def __repr__(self) -> str:
        return f"FollowerRole({self.partition}, epoch {self.leader_epoch} of node {self.leader_id})"

    @property
    def is_active(self) -> bool:
        """Whether this role has not ended."""
        return self.partition.follower is self

    @property
    def fetch_position(self) -> tuple[int, int]:
        """The next offset to copy, and the epoch of the last batch in the log (-1 for none): a replica's fetch."""
        return self.log.end_offset, self.log.epochs.latest

    # --- Copying

    def append(self, records: memoryview, now_ms: int) -> int:
        """Appends the whole batches at the start of `records` unchanged; returns how many bytes they have.

        ApiError if the first batch is damaged or does not continue this log, or if the disk fails. A batch of a later
        leader ends the copying: the leader may have been deposed while its answer was sent, and its file may have
        changed. Those batches come again with the fetches of that epoch.
        """
        headers = self._checked(records)
        log = self.log
        written = 0
        while headers:
            piece = self._piece(headers)
            end = headers[piece - 1].end
            part = headers[:piece]
            for header in part:
                header.position -= written
            try:
                log.append_as_follower(records[written:end], part, now_ms)
            except OSError as error:
                raise self.partition.storage_error(error) from error
            written = end
            headers = headers[piece:]
        self.flush_if_due()
        return written

    def _checked(self, records: memoryview) -> list[BatchHeader]:
        """The headers of the batches that this log can take. ApiError if the first one is wrong.

        There may be gaps between batches: compaction leaves them, and the topic may be one that is no longer compacted.
        """
        if len(records) >= HEADER_BYTES:
            self._check_size(read_header(records))
        headers = walk_batches(records)
        offset, epoch = self.log.end_offset, self.log.epochs.latest
        for number, header in enumerate(headers):
            if header.leader_epoch > self.leader_epoch:
                return headers[:number]
            try:
                self._check_size(header)
                self._check_order(header, offset, epoch)
                check_crc(records, header)
            except ApiError:
                if number == 0:
                    raise
                return headers[:number]
            offset, epoch = header.next_offset, header.leader_epoch
        return headers

    def _check_size(self, header: BatchHeader) -> None:
        """By what any leader may store: max.message.bytes may have been lowered since."""
        if header.size > settings.BATCH_BYTES_MAX:
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE,
                f"node {self.leader_id} sent a batch of {header.size} bytes for {self.partition}, and there are no "
                f"larger ones than {settings.BATCH_BYTES_MAX}",
            )

    def _check_order(self, header: BatchHeader, offset: int, epoch: int) -> None:
        if header.base_offset < offset or header.last_offset_delta < 0 or header.leader_epoch < epoch:
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE,
                f"node {self.leader_id} sent offsets {header.base_offset} to {header.last_offset} of epoch "
                f"{header.leader_epoch} for {self.partition}, which ends at {offset} in epoch {epoch}",
            )

    def _piece(self, headers: list[BatchHeader]) -> int:
        """How many batches to write at once: what fits into a segment, and at least one."""
        most = headers[0].position + self.log.config.segment_bytes
        for number, header in enumerate(headers):
            if header.end > most:
                return max(number, 1)
        return len(headers)

    def start_of(self, records: memoryview) -> int | None:
        """Where this log must start to take `records`, if that is before its own start; None if it need not change.

        The leader's log may start in the middle of a batch, and so does the log of a follower that began there.
        """
        log = self.log
        if log.start_offset == log.end_offset and len(records) >= HEADER_BYTES:
            header = read_header(records)
            if header.base_offset < log.end_offset <= header.last_offset:
                return header.base_offset
        return None

    def leader_committed(self, high_watermark: int) -> None:
        """The leader's high watermark. This log may not reach it yet; it never goes back."""
        reached = min(high_watermark, self.log.end_offset)
        if reached > self.partition.high_watermark:
            self.partition.move_high_watermark(reached)
            if self.partition.waiting_fetches:
                self.partition.owner.high_watermark_advanced(self.partition)

    # --- Flushing

    @property
    def may_fetch(self) -> bool:
        """Whether a fetch may tell the leader that this log has what it has."""
        return not self.log.is_flush_due

    def flush_if_due(self) -> None:
        if self.log.is_flush_due and not self._awaits_flush:
            self._awaits_flush = True
            self.partition.owner.flush_wanted(self)

    def flushed(self) -> None:
        """What was in the log when `flush_wanted` was called is on disk."""
        self._awaits_flush = False
        self.flush_if_due()
        if self.is_active and self.may_fetch:
            self.partition.owner.follower_flushed(self)

    def flush_failed(self) -> None:
        """The disk has no room for what the flush writes. The owner calls `flush_if_due` again later."""
        self._awaits_flush = False

    def replace_log(self, log: "Log") -> None:
        """As `Partition.replace_log`."""
        self.log = log
        self._awaits_flush = False
        self.flush_if_due()
        self.settings_changed()

    def settings_changed(self) -> None:
        """The log's settings may no longer ask for a flush that the next fetch waits for."""
        if self.may_fetch:
            self.partition.owner.follower_flushed(self)

    # --- Truncating

    def truncation_offset(self, epoch: int, end_offset: int) -> int:
        """How much of this log to keep when the leader says that its `epoch` ends at `end_offset` (KIP-595).

        Both logs agree up to the smaller end of that epoch. If this log has only earlier epochs, the follower goes back
        to the end of the latest of these and fetches again. That may be before the start of this log: nothing of it is
        kept then, and it continues there. If it continued at its own start, it would lack what the leader has before.
        """
        log = self.log
        own_epoch, own_end_offset = log.epoch_end(epoch)
        if own_epoch == -1:
            own_end_offset = log.end_offset  # This log has no epochs, and so nothing to compare.
        kept = own_end_offset if -1 < own_epoch < epoch else min(own_end_offset, end_offset)
        return max(kept, 0)
