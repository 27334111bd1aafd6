"""One fetch of one partition of a topic that stays, checked."""

from typing import NamedTuple

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from quire.protocol.records import Record
from simulator.clients.client import SimClient
from simulator.ledger import PartitionBook

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class Read(NamedTuple):
    records: list[Record]
    next_offset: int
    stable_offset: int
    high_watermark: int


async def read(
    client: SimClient, book: PartitionBook, offset: int, *, isolation_level: int, max_bytes: int = 1 << 20
) -> Read | ErrorCode:
    """Reads from `offset` on; returns the error, if it is an allowed one."""
    wire = await client.connected(book)
    floor, era = book.floor(wire.node), wire.era
    topic = FetchTopic(topic=book.topic.name, topic_id=book.topic.topic_id)
    topic.partitions = [FetchPartition(partition=book.index, fetch_offset=offset, partition_max_bytes=max_bytes)]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic], isolation_level=isolation_level)
    answer = await client.ask_on(wire, request)
    found = answer.responses[0].partitions[0]
    allowed = (ErrorCode.OFFSET_OUT_OF_RANGE, *client.excuses)
    error = client.expect(found.error_code, f"reading {book}", *allowed)
    checker = client.scene.checker
    if error is ErrorCode.OFFSET_OUT_OF_RANGE:
        checker.bounds.out_of_range(book, era, floor, offset)
    if error is not ErrorCode.NONE:
        return error
    committed_only = isolation_level == READ_COMMITTED
    checked = checker.fetches.check(book, era, floor, offset, found, committed_only=committed_only)
    if checked is None:
        return Read([], offset, offset, offset)
    return Read(checked.records, checked.next_offset, found.last_stable_offset, found.high_watermark)
