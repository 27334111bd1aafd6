"""Checking a batch's offset against the next batch: no checksum covers offset and leader epoch, but both only rise."""

from quire.protocol.records.batch import HEADER_BYTES, BatchHeader, read_header
from quire.protocol.records.invalid import InvalidRecords
from quire.seams import File
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError


def intact_at(file: File, position: int, end: int) -> BatchHeader | None:
    """The header of the batch at `position`, which must end before `end`; None if there is no intact one."""
    if position + HEADER_BYTES > end:
        return None
    try:
        header = read_header(file.pread(HEADER_BYTES, position))
        if position + header.size > end or header.base_offset < 0 or header.last_offset_delta < 0:
            return None
        batch_scan.read_batch(file, position, header)
    except (InvalidRecords, DamagedBatchError):
        return None
    return header


def only_its_offset_is_wrong(header: BatchHeader, expected_offset: int, following: BatchHeader) -> bool:
    """Whether an intact batch fits between the batches before and after it, except that its offset is wrong.

    Its leader epoch must not be above that of the next batch, which may be a remainder of an overwritten log.
    """
    is_between = expected_offset <= header.base_offset and header.next_offset <= following.base_offset
    fits_between = following.base_offset - expected_offset > header.last_offset_delta
    return fits_between and not is_between and header.leader_epoch <= following.leader_epoch


def does_not_belong(file: File, position: int, header: BatchHeader, expected_offset: int, end: int) -> bool:
    """Whether the offset of a batch must be wrong, as far as its file shows."""
    if header.base_offset <= expected_offset:
        return header.base_offset < expected_offset
    following = intact_at(file, position + header.size, end)
    return following is not None and only_its_offset_is_wrong(header, expected_offset, following)
