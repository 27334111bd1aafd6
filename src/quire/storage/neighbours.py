"""What the batch behind another one says about it: no checksum covers its offset and leader epoch, but both rise."""

from quire.protocol.records.batch import HEADER_BYTES, BatchHeader, read_header
from quire.protocol.records.invalid import InvalidRecords
from quire.seams import File
from quire.storage import batch_scan
from quire.storage.batch_scan import DamagedBatchError


def intact_at(file: File, position: int, end: int) -> BatchHeader | None:
    """The header of the batch at `position` of a file that counts up to `end`; None if there is no intact one."""
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


def only_its_offset_is_wrong(header: BatchHeader, expected_offset: int, behind: BatchHeader) -> bool:
    """Whether an intact batch would fit between the end of the one before it and the one behind it, but for its offset.

    It must not be from a later leader than the one behind it: that may be what is left of an overwritten log.
    """
    is_between = expected_offset <= header.base_offset and header.next_offset <= behind.base_offset
    fits_between = behind.base_offset - expected_offset > header.last_offset_delta
    return fits_between and not is_between and header.leader_epoch <= behind.leader_epoch


def does_not_belong(file: File, position: int, header: BatchHeader, expected_offset: int, end: int) -> bool:
    """Whether a batch cannot have the offset that it says to have, as far as can be told within its file."""
    if header.base_offset <= expected_offset:
        return header.base_offset < expected_offset
    behind = intact_at(file, position + header.size, end)
    return behind is not None and only_its_offset_is_wrong(header, expected_offset, behind)
