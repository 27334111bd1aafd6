"""Finding the aborted transactions that may have records in a part of a log.

An entry is in the index of the segment with the marker, which may come after those with the records. So the search goes
from segment to segment until an entry's last stable offset shows that no later one can matter.
"""

from quire.seams import FileSlice
from quire.storage.indexes.index_file import CorruptIndexError
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.producers.producer_replay import rebuild_transaction_index
from quire.storage.producers.producer_snapshot import ProducerSnapshots
from quire.storage.producers.transaction_index_rebuild import TransactionIndexRebuild
from quire.storage.scanning.range_check import NotCheckedError
from quire.storage.segments import Segments


def aborted_in(
    segments: Segments, snapshots: ProducerSnapshots, offset: int, part: FileSlice | None, log_end_offset: int
) -> list[AbortedTransaction]:
    """The aborted transactions that may have records in `part` (or else in the log), read from `offset` on.

    NotCheckedError if a job has to rebuild a wrong index of a large segment first.
    """
    first_slot = segments.slot_of(offset)
    found: list[AbortedTransaction] = []
    upper_offset = log_end_offset if part is None else None
    for slot in range(first_slot, len(segments)):
        index = segments[slot].transaction_index
        if index.is_known_empty:
            continue
        if part is not None and upper_offset is None:
            upper_offset = _offset_bound(segments, first_slot, part, log_end_offset)
        assert upper_offset is not None
        try:
            here, complete = index.overlapping(offset, upper_offset)
        except CorruptIndexError as error:
            end_offset = _end_of(segments, slot, log_end_offset)
            if segments[slot].takes_long_to_read:
                rebuild = TransactionIndexRebuild(segments, snapshots, segments[slot], end_offset, error)
                raise NotCheckedError(rebuild) from None
            rebuild_transaction_index(segments, snapshots, segments[slot], end_offset, error)
            here, complete = index.overlapping(offset, upper_offset)
        found += here
        if complete:
            break
    return found


def _offset_bound(segments: Segments, slot: int, part: FileSlice, log_end_offset: int) -> int:
    """An offset above all records in `part`, which is a slice of this segment or of one soon after it."""
    while slot + 1 < len(segments) and segments[slot].file is not part.file:
        slot += 1
    bound = segments[slot].offset_bound(part.position + part.size, in_job=True)
    return bound if bound is not None else _end_of(segments, slot, log_end_offset)


def _end_of(segments: Segments, slot: int, log_end_offset: int) -> int:
    return segments[slot + 1].base_offset if slot + 1 < len(segments) else log_end_offset
