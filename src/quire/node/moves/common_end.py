"""Up to where two logs of one replica are the same.

No two leaders share an epoch, so a batch is given by its offset and its epoch: as long as both logs have the same epoch
at each offset, they have the same batches.
"""

from quire.storage.leader_epochs import NO_EPOCH, LeaderEpochs
from quire.storage.log import Log


def kept_end(copy: Log, original: Log) -> int | None:
    """How much of a copy is as in the original; None if it has to begin again."""
    if copy.start_offset > original.start_offset:
        return None
    if copy.start_offset == copy.end_offset:
        return copy.end_offset
    start_offset = max(copy.start_offset, original.start_offset)
    end_offset = min(copy.end_offset, original.end_offset)
    if start_offset >= end_offset:
        return None
    common = common_end(copy.epochs, original.epochs, start_offset, end_offset)
    return common if common > start_offset else None


def common_end(one: LeaderEpochs, other: LeaderEpochs, start_offset: int, end_offset: int) -> int:
    """The first offset from `start_offset` on where the epochs differ, at most `end_offset`.

    An offset without an epoch, from before Kafka had epochs, counts as different: it proves nothing.
    """
    changes = {start for epochs in (one, other) for _, start in epochs.entries if start_offset < start < end_offset}
    for offset in sorted({start_offset, *changes}):
        epoch = one.epoch_of(offset)
        if offset < end_offset and (epoch == NO_EPOCH or epoch != other.epoch_of(offset)):
            return offset
    return end_offset
