"""ListOffsets, asked and checked: the start, the end, or the first record of a time."""

from dataclasses import dataclass

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from simulator.clients.client import SimClient
from simulator.ledger import PartitionBook

LATEST = -1
EARLIEST = -2


@dataclass(frozen=True, slots=True)
class Listed:
    offset: int
    era: int


async def list_offset(client: SimClient, book: PartitionBook, timestamp: int, *, afresh: bool = False) -> Listed:
    """Retries until there is an answer. By name, so the topic must be one that stays. Raises Lost without a connection.

    `afresh` ignores earlier ends: a power loss may have truncated the log, and no client has read it yet.
    """
    while True:
        wire = await client.connected(book)
        floor, era = book.floor(wire.node, afresh=afresh), wire.era
        answer = await client.ask_on(
            wire,
            ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    ListOffsetsTopic(
                        name=book.topic.name,
                        partitions=[ListOffsetsPartition(partition_index=book.index, timestamp=timestamp)],
                    )
                ],
            ),
        )
        found = answer.topics[0].partitions[0]
        error = client.expect(found.error_code, f"ListOffsets of {book}", *client.excuses)
        if error is ErrorCode.NONE:
            break
        await client.back_off()
    if timestamp == LATEST:
        client.scene.checker.bounds.listed_end(book, era, floor, found.offset)
    elif timestamp == EARLIEST:
        client.scene.checker.bounds.listed_start(book, era, floor, found.offset)
    else:
        client.scene.checker.bounds.listed_time(book, era, floor, timestamp, found.offset)
    return Listed(found.offset, era)
