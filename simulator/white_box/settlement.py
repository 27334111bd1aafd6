"""After a loss of records: what the first leader since then has is the truth, and everything later must agree with it.

A loss is allowed if all replicas in the ISR and ELR have lost power (`simulator.replicas`), or if the topic allows the
election of a replica outside of them. It may take what was not on disk, or what that replica did not have, and nothing
else: everything before must be in the new leader's log.
"""

from quire.replication.partition import Partition
from simulator.checks.checker import Checker
from simulator.checks.superseded import is_compacted
from simulator.disk import SimDisk
from simulator.ledger import PartitionBook
from simulator.white_box.replica_log import records_of


def settle(checker: Checker, book: PartitionBook, disk: SimDisk, leader: Partition, *, kept: int) -> int:
    """Compares a new leader's log with what is known; returns how many known records are lost.

    `kept` is the end of what cannot be lost.
    """
    there = {record.offset: bytes(record.value or b"") for _, record in records_of(disk, leader)}
    end = cut = leader.log.end_offset
    compacted = is_compacted(book.topic)
    for offset in sorted(book.known):
        if offset >= end:
            break
        if offset < leader.log.start_offset or (compacted and offset not in there):
            continue
        if there.get(offset) != book.known[offset].value:
            cut = offset
            break
    return checker.losses.settle(book, leader.log.start_offset, cut, kept)
