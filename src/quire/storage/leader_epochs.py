"""Which leader wrote what: for each leader epoch, the offset at which it began to write.

A replica asks with these where its log and the leader's part ways, so an entry must be there for every epoch that has
records. In memory it is always complete. The file, `leader-epoch-checkpoint`, is brought up to date before the recovery
point passes an epoch's start; what lies beyond the recovery point is scanned after a crash, and finds its epochs there.
So a change of leaders costs no fsync, and a crash at any time loses no epoch that has records.
"""

from bisect import bisect_right

from quire.seams import Disk
from quire.seams.disk import write_atomically
from quire.storage.checkpoints import CheckpointError, format_checkpoint, parse_checkpoint

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
        """The newest epoch, or -1. Every append compares it with its leader's."""
        for epoch, start in entries or ():
            self.assign(epoch, start)

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """From `start_offset` on, `epoch` writes. Entries this contradicts were never committed and go."""
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
        """(epoch, end offset) of the newest epoch at or below the one asked for; (-1, -1) when that cannot be told.

        An epoch older than all that is known gets itself and the start of what is there: its records are gone, and a
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
        """The epoch that wrote `offset`; -1 if it is older than all that is known."""
        slot = bisect_right(self._starts, offset) - 1
        return self._epochs[slot] if slot >= 0 else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`: epochs that began there or later have no records."""
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`: the epoch it falls into starts there, older ones go."""
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


def read_epochs(disk: Disk, folder: str) -> LeaderEpochs:
    """From the folder's checkpoint; empty when there is none. CheckpointError when it makes no sense."""
    path = f"{folder}/{FILE_NAME}"
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


def write_epochs(disk: Disk, folder: str, content: bytes) -> None:
    """Replaces the checkpoint at once or not at all; may run in a job, with `content` from `to_bytes`."""
    write_atomically(disk, f"{folder}/{FILE_NAME}", content)
