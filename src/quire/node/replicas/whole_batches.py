"""What of a slice a follower can use: it drops a batch that is cut off, and a quota would count that for nothing."""

from contextlib import suppress

from quire.seams import FileSlice
from quire.storage.scanning.batch_scan import DamagedBatchError, headers

BATCHES_MAX = 32
"""Of a slice with more batches than this, the last one is too small a part to look for it."""


def without_cut_batch(part: FileSlice) -> FileSlice:
    """The whole batches of a slice that begins with one, or the slice as it is if it has many."""
    size = 0
    with suppress(DamagedBatchError):
        for number, (position, header) in enumerate(headers(part.file, part.position, part.position + part.size)):
            if number == BATCHES_MAX:
                return part
            size = position + header.size - part.position
    return FileSlice(part.file, part.position, size or part.size)
