"""What the state machine knows of the log without reading it: its start and end, what is on disk, its epochs.

The shell keeps the bytes; this keeps the few numbers that decide votes, divergence and commits. Both change
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
    """Offsets and epoch starts. `start` is the end of a snapshot; everything below `synced` survives a power loss."""

    start: LogPosition = LogPosition(0, 0)
    end_offset: int = 0
    synced_offset: int = 0
    """-1 after a cut that is not synced yet: a power loss may bring back what was cut."""
    cuts: int = 0
    """How often the log was truncated or replaced. It distinguishes a sync of the current log from an earlier one."""
    epoch_starts: list[tuple[int, int]] = field(default_factory=list)

    @property
    def last(self) -> LogPosition:
        epoch = self.epoch_starts[-1][0] if self.epoch_starts else self.start.epoch
        return LogPosition(epoch, self.end_offset)

    def append(self, epoch: int, base_offset: int, next_offset: int) -> None:
        assert base_offset == self.end_offset < next_offset, "a log has no gaps and no empty batches"
        assert self.is_cut_synced, "a cut is synced before the next append"
        assert epoch >= self.last.epoch, "epochs in a log only grow"
        if not self.epoch_starts or self.epoch_starts[-1][0] < epoch:
            self.epoch_starts.append((epoch, base_offset))
        self.end_offset = next_offset

    @property
    def is_synced(self) -> bool:
        return self.synced_offset == self.end_offset

    @property
    def is_cut_synced(self) -> bool:
        """Whether the log may be appended to: else old batches, intact, could follow new ones that a crash tore."""
        return self.synced_offset >= 0

    def sync(self, offset: int, cuts: int) -> None:
        """Everything below `offset` is on disk. A late report about a log that was cut since changes nothing."""
        if cuts == self.cuts:
            self.synced_offset = max(self.synced_offset, min(offset, self.end_offset))

    def truncate(self, offset: int) -> None:
        assert self.start.offset <= offset <= self.end_offset
        while self.epoch_starts and self.epoch_starts[-1][1] >= offset:
            self.epoch_starts.pop()
        self.end_offset = offset
        self._cut()

    def restart_at(self, position: LogPosition) -> None:
        """A snapshot replaces the whole log."""
        self.start = position
        self.end_offset = position.offset
        self.epoch_starts.clear()
        self._cut()

    def _cut(self) -> None:
        self.synced_offset = -1
        self.cuts += 1

    def forget_before(self, position: LogPosition) -> None:
        """The log now starts at a snapshot's end; of the epochs before it only the snapshot's own is known."""
        assert self.start.offset <= position.offset <= self.end_offset
        index = bisect_right(self.epoch_starts, position.offset, key=lambda entry: entry[1]) - 1
        kept = self.epoch_starts[index + 1 :]
        if index >= 0 and position.offset < self.end_offset:
            kept.insert(0, (self.epoch_starts[index][0], position.offset))
        self.start = position
        self.epoch_starts = kept

    def end_of_epoch(self, epoch: int) -> LogPosition:
        """The largest epoch here that is not above `epoch`, and its end: up to there two logs can agree."""
        index = bisect_right(self.epoch_starts, epoch, key=lambda entry: entry[0])
        end = self.epoch_starts[index][1] if index < len(self.epoch_starts) else self.end_offset
        return LogPosition(self.epoch_starts[index - 1][0] if index else self.start.epoch, end)
