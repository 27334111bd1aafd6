"""What retention may have deleted from a log, as far as clients know.

They know the timestamps of the records they sent or read, the settings that the topic may have had, and the largest
possible size of the log. Every doubt counts for the node: its clock may have been ahead, any requested setting may have
been in force, and all records ever sent may be in the log. Records that retention cannot have deleted even so must be
there.
"""

from simulator.checks.superseded import is_compacted, may_be_superseded
from simulator.ledger import RECORD_OVERHEAD_BYTES, PartitionBook, TopicBook

NEVER = 1 << 62
LONG_MS = 24 * 3600 * 1000
"""No run takes this long, whatever its clocks say."""


def gone_before(book: PartitionBook, latest_ms: int) -> int:
    """The first offset that cannot have been deleted; `latest_ms` is the latest time a node's clock has shown."""
    topic = book.topic
    limit_ms, limit_bytes = _smallest(topic, "retention.ms"), _smallest(topic, "retention.bytes")
    if limit_ms > LONG_MS and limit_bytes == NEVER:
        return book.deletion_asked
    # A record that is gone keeps no segment: if timestamps are out of order, the rest of its segment may be older.
    superseded = may_be_superseded(book) if is_compacted(topic) else ()
    left_bytes = book.sent_bytes
    for offset in sorted(book.known):
        left_bytes -= len(book.known[offset].value) + RECORD_OVERHEAD_BYTES
        if offset < book.deletion_asked or left_bytes >= limit_bytes or offset in superseded:
            continue
        timestamp = _timestamp(book, offset)
        if timestamp is not None and timestamp + limit_ms >= latest_ms:
            return offset
    return NEVER


def _smallest(topic: TopicBook, key: str) -> int:
    """The smallest limit that the topic may ever have had."""
    setting = topic.settings.get(key)
    values = [int(value) for value in setting.tried] if setting is not None else []
    return min((value for value in values if value >= 0), default=NEVER)


def _timestamp(book: PartitionBook, offset: int) -> int | None:
    """The timestamp of the record at an offset; None if only the node knows it."""
    known = book.known[offset]
    if known.timestamp is not None:
        return known.timestamp
    stamped_by_node = book.topic.settings.get("message.timestamp.type")
    if stamped_by_node is not None and stamped_by_node.acknowledged == "LogAppendTime":
        return None
    return book.written[known.value].timestamp
