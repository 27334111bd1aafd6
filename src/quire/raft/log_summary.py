"""What the state machine knows of the log without reading it: where it starts and ends, what is on disk, its epochs.

The shell keeps the bytes; this keeps the few numbers that votes, divergence and commits are decided on. Both move
together, because every append and truncation is an effect of the machine that keeps this summary.
"""

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class LogPosition:
    """The end of a log: compared by epoch first, then offset, so `max` is the log that may lead (Raft 5.4.1)."""

    epoch: int
    offset: int


@dataclass(slots=True)
class LogSummary:
    """Offsets and epoch starts. `start` is where a snapshot took over; `synced` is what survives a power cut."""

    start: LogPosition = LogPosition(0, 0)
    end_offset: int = 0
    synced_offset: int = 0
    epoch_starts: list[tuple[int, int]] = field(default_factory=list)

    @property
    def last(self) -> LogPosition:
        epoch = self.epoch_starts[-1][0] if self.epoch_starts else self.start.epoch
        return LogPosition(epoch, self.end_offset)

    def append(self, epoch: int, base_offset: int, next_offset: int) -> None:
        assert base_offset == self.end_offset < next_offset, "a log has no gaps and no empty batches"
        assert epoch >= self.last.epoch, "epochs in a log only grow"
        if not self.epoch_starts or self.epoch_starts[-1][0] < epoch:
            self.epoch_starts.append((epoch, base_offset))
        self.end_offset = next_offset

    def sync(self, offset: int) -> None:
        """Everything below `offset` is on disk. Late news of a longer, since truncated log says nothing new."""
        self.synced_offset = max(self.synced_offset, min(offset, self.end_offset))

    def truncate(self, offset: int) -> None:
        assert self.start.offset <= offset <= self.end_offset
        while self.epoch_starts and self.epoch_starts[-1][1] >= offset:
            self.epoch_starts.pop()
        self.end_offset = offset
        self.synced_offset = min(self.synced_offset, offset)

    def restart_at(self, position: LogPosition) -> None:
        """A snapshot takes the place of the whole log."""
        self.start = position
        self.end_offset = self.synced_offset = position.offset
        self.epoch_starts.clear()

    def forget_before(self, position: LogPosition) -> None:
        """The log now starts at a snapshot's end; epochs that ended before it are only known by the snapshot's."""
        assert self.start.offset <= position.offset <= self.end_offset
        index = bisect_right(self.epoch_starts, position.offset, key=lambda entry: entry[1]) - 1
        kept = self.epoch_starts[index + 1 :]
        if index >= 0 and position.offset < self.end_offset:
            kept.insert(0, (self.epoch_starts[index][0], position.offset))
        self.start = position
        self.epoch_starts = kept

    def end_of_epoch(self, epoch: int) -> LogPosition:
        """The largest epoch here that is not above `epoch`, and where it ends: where two logs can still agree."""
        index = bisect_right(self.epoch_starts, epoch, key=lambda entry: entry[0])
        end = self.epoch_starts[index][1] if index < len(self.epoch_starts) else self.end_offset
        return LogPosition(self.epoch_starts[index - 1][0] if index else self.start.epoch, end)
