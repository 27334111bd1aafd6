"""Distinguishing a torn log from a damaged one, by what follows the first batch that is not intact.

A crash tears the end of a log: nothing after the tear is intact. Or, because sectors reach the disk in any order, it
leaves a hole where some of the last writes should be, with later writes after it; none of these was reported as
durable. A hole consists of zeros from the start of a batch or of a sector to the end of a sector. Anything else that
has intact batches after it was durable once and has been damaged since. Truncating the log there would lose them.
"""

from quire.protocol.records.batch import HEADER_BYTES, MAGIC, read_header
from quire.protocol.records.invalid import InvalidRecords
from quire.seams import File
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError

SECTOR = 512

_CHUNK = 1 << 20
_MAGIC_POSITION = 16
_MAGIC_BYTE = bytes([MAGIC])
_LENGTH_END = 12


class DamagedLogError(Exception):
    """A log that is damaged before its end. It has not been changed."""

    def __init__(self, path: str, position: int, offset: int, reason: str) -> None:
        super().__init__(f"{path} is damaged at position {position}, offset {offset} ({reason}), and intact after that")
        self.path = path
        self.position = position


def find_intact(file: File, position: int, end: int, lowest_offset: int) -> int | None:
    """Where the first intact batch at or after `position` begins whose offset is at least `lowest_offset`.

    Slow, because it tries every byte: no length can be trusted. Only for a log that is known to be damaged.
    """
    for start in range(position, end, _CHUNK):
        chunk = file.pread(min(_CHUNK + HEADER_BYTES, end - start), start)
        at = chunk.find(_MAGIC_BYTE, _MAGIC_POSITION) - _MAGIC_POSITION
        while 0 <= at < _CHUNK:
            if _is_intact(file, chunk, at, start, end, lowest_offset):
                return start + at
            at = chunk.find(_MAGIC_BYTE, at + 1 + _MAGIC_POSITION) - _MAGIC_POSITION
    return None


def next_intact(file: File, position: int, end: int, lowest_offset: int) -> int | None:
    """As `find_intact`, after a damaged batch at `position`, whose length is used if it leads to an intact batch."""
    try:
        following = position + read_header(file.pread(HEADER_BYTES, position)).size
    except InvalidRecords:
        following = end
    if following + HEADER_BYTES <= end:
        chunk = file.pread(HEADER_BYTES, following)
        if chunk[_MAGIC_POSITION] == MAGIC and _is_intact(file, chunk, 0, following, end, lowest_offset):
            return following
    return find_intact(file, position + 1, end, lowest_offset)


def _is_intact(file: File, chunk: bytes, at: int, start: int, end: int, lowest_offset: int) -> bool:
    offset = int.from_bytes(chunk[at : at + 8], "big", signed=True)
    size = int.from_bytes(chunk[at + 8 : at + _LENGTH_END], "big") + _LENGTH_END
    if offset < lowest_offset or start + at + size > end:
        return False
    try:
        batch_scan.read_batch(file, start + at, read_header(chunk, at))
    except (InvalidRecords, DamagedBatchError):
        return False
    return True


def is_hole(file: File, position: int, end: int, offset: int) -> bool:
    """Whether writes were lost between `position`, where a batch with `offset` should begin, and `end`.

    The batch at `end` is intact although its first bytes are in a sector that was lost, if these bytes are zeros.
    """
    whole_sectors = -(-end // SECTOR) * SECTOR
    content = file.pread(whole_sectors - position, position)
    stop = SECTOR - position % SECTOR
    # Every batch begins with some zeros. They indicate a hole only if other bytes should be among them.
    telling = stop >= _LENGTH_END or any(offset.to_bytes(8, "big")[:stop])
    if telling and stop <= len(content) and not any(content[:stop]):
        return True
    return any(not any(content[at : at + SECTOR]) for at in range(stop, len(content) - SECTOR + 1, SECTOR))
