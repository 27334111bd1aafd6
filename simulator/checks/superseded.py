"""What compaction may have removed from a log: a record, once there is a later one with its key.

In a compacted topic a record's key follows from its number (`key_for`), so many records of all producers share one. The
last record of a key must always be there: while no client writes, a reader from the log's start finds it. A power loss
removes records only from the end of a log. Every record before the remaining end is there or superseded.
"""

from collections.abc import Sequence

from quire.protocol.records import Record
from simulator.ledger import PartitionBook, TopicBook
from simulator.violation import Violation

KEYS = 5
POLICY = "cleanup.policy"


def is_compacted(topic: TopicBook) -> bool:
    setting = topic.settings.get(POLICY)
    return setting is not None and "compact" in setting.acknowledged


def key_for(number: int) -> bytes:
    return b"key %d" % (number % KEYS)


def may_be_superseded(book: PartitionBook) -> set[int]:
    """Known offsets that compaction may have removed, perhaps for a later record that no client knows of yet."""
    known = {each.value for each in book.known.values()}
    doubtful = {key_for(written.number) for value, written in book.written.items() if value not in known}
    last_of = {key_for(book.written[book.known[offset].value].number): offset for offset in sorted(book.known)}
    return set(book.known) - {offset for key, offset in last_of.items() if key not in doubtful}


def check_survivors(book: PartitionBook, records: Sequence[Record], start_offset: int, end_offset: int) -> None:
    """`records` are all that is left from `start_offset` up to `end_offset`, read while no client wrote."""
    there = {record.offset for record in records}
    last_of = {key_for(book.written[bytes(record.value or b"")].number): record.offset for record in records}
    for offset, known in book.known.items():
        if start_offset <= offset < end_offset and offset not in there:
            key = key_for(book.written[known.value].number)
            if last_of.get(key, -1) < offset:
                raise Violation(
                    "compaction removes a record only for a later one with its key",
                    f"{book} has lost offset {offset} ({known.how}), the last one of {key.decode()}",
                )
