"""The leader epochs of a log: for each epoch, its start offset.

A replica uses them to find where its log diverges from the leader's, so every epoch that has records must have an
entry. In memory the list is always complete. The file, `leader-epoch-checkpoint`, is updated before the recovery point
passes the start of an epoch. What is beyond the recovery point is scanned after a crash, which finds the epochs there.
So a change of leaders costs no fsync, and a crash at any time loses no epoch that has records.
"""

from bisect import bisect_right

from quire.seams import Disk
from quire.storage.directory.checkpoints import CheckpointError, format_checkpoint, parse_checkpoint

FILE_NAME = "leader-epoch-checkpoint"

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs:
    """Epochs and their start offsets; both only rise."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = NO_EPOCH
        """The newest epoch, or -1. Every append compares it with the leader's epoch."""
        for epoch, start in entries or ():
            self.assign(epoch, start)

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Starts `epoch` at `start_offset`. Entries that contradict this were never committed and are removed."""
        assert epoch >= 0 and start_offset >= 0, f"epoch {epoch} cannot start at {start_offset}"
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and starts[-1] <= start_offset:
            return
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self.latest = epoch

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) of the newest epoch at or below `epoch`; (-1, -1) if that is unknown.

        For an epoch older than all entries, it is that epoch and the start of the log: its records are deleted, and a
        follower that still has them begins where this log does.
        """
        epochs = self._epochs
        if epoch == NO_EPOCH or not epochs or epoch > epochs[-1]:
            return NO_EPOCH, NO_OFFSET
        if epoch == epochs[-1]:
            return epoch, log_end_offset
        after = bisect_right(epochs, epoch)
        return (epochs[after - 1] if after else epoch), self._starts[after]

    def epoch_of(self, offset: int) -> int:
        """The epoch of the record at `offset`; -1 if it is older than all entries."""
        slot = bisect_right(self._starts, offset) - 1
        return self._epochs[slot] if slot >= 0 else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Removes epochs that start at `end_offset`, where the log now ends, or later: they have no records."""
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH

    def truncate_from_start(self, start_offset: int) -> None:
        """Removes epochs that end before `start_offset`, where the log now starts; the epoch of it starts there."""
        slot = bisect_right(self._starts, start_offset) - 1
        if slot < 0 or (slot == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:slot], self._starts[:slot]
        self._starts[0] = start_offset

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
        self.latest = NO_EPOCH

    def to_bytes(self) -> bytes:
        return format_checkpoint(f"{epoch} {start}" for epoch, start in self.entries)


def epochs_path(folder: str) -> str:
    return f"{folder}/{FILE_NAME}"


def read_epochs(disk: Disk, folder: str) -> LeaderEpochs:
    """The epochs in the folder's checkpoint; empty if there is none. CheckpointError if it is not valid."""
    path = epochs_path(folder)
    try:
        return LeaderEpochs(parse_epochs(disk.read_file(path), path))
    except FileNotFoundError:
        return LeaderEpochs()


def parse_epochs(content: bytes, path: str) -> list[tuple[int, int]]:
    """(epoch, start offset) of each line."""
    entries = []
    for line in parse_checkpoint(content, path):
        epoch, _, start = line.partition(" ")
        if not (epoch.isdecimal() and start.isdecimal()):
            raise CheckpointError(f"{path}: {line!r} is not an epoch and an offset")
        entries.append((int(epoch), int(start)))
    return entries
