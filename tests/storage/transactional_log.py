"""A log with open, committed and aborted transactions in several segments."""

from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, append, batch, marker, open_log, read

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


ABORTED = [AbortedTransaction(1, 0, 5, 1), AbortedTransaction(2, 1, 7, 8), AbortedTransaction(1, 9, 12, 13)]


ENDED = [(5, 0), (7, 1), (10, 8), (12, 9)]
"""Every marker, with the first offset of its transaction."""


def transactional(producer_id: int, sequence: int) -> bytearray:
    value = f"{producer_id}/{sequence}".encode().ljust(60, b".")
    return batch(value, producer_id=producer_id, producer_epoch=0, sequence=sequence, transactional=True)


def written(disk: SimDisk) -> Log:
    """Offsets 0 to 12 in segments of three batches, with aborted transactions that span several segments.

    0 by 1 | 1 by 2 | 2 plain | 3 by 1 | 4 by 2 | 5 ABORT 1 | 6 plain | 7 ABORT 2
    8 by 3 | 9 by 1 | 10 COMMIT 3 | 11 by 1 | 12 ABORT 1
    """
    log = open_log(disk, CONFIG)
    plain = bytes(60)
    append(log, transactional(1, 0))
    append(log, transactional(2, 0))
    append(log, batch(plain))
    append(log, transactional(1, 1))
    append(log, transactional(2, 1))
    append(log, marker(1, aborts=True))
    append(log, batch(plain))
    append(log, marker(2, aborts=True))
    append(log, transactional(3, 0))
    append(log, transactional(1, 2))
    append(log, marker(3, aborts=False))
    append(log, transactional(1, 3))
    append(log, marker(1, aborts=True))
    return log


def aborted(log: Log, offset: int = 0, max_bytes: int = 1) -> list[AbortedTransaction]:
    part = read(log, offset, max_bytes)
    assert part is not None
    return log.aborted_transactions(offset, part)


def all_aborted(log: Log) -> list[AbortedTransaction]:
    found = dict.fromkeys(each for offset in range(log.start_offset, log.end_offset) for each in aborted(log, offset))
    return sorted(found, key=lambda each: each.last_offset)


def index_files(disk: SimDisk) -> dict[str, bytes]:
    names = [name for name in disk.list_dir(FOLDER) if name.endswith(".txnindex")]
    return {name: disk.read_file(f"{FOLDER}/{name}") for name in names}
