"""Produce requests, and the answers that are allowed."""

from collections.abc import Sequence

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from quire.protocol.records import Compression
from simulator.clients.batches import ACKS_ALL, Batch
from simulator.clients.client import SimClient
from simulator.ledger import PartitionBook
from simulator.violation import Violation

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_TOPIC_IDS = 13
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
TIMEOUT_MS = 3000


def request_for(batches: Sequence[Batch], acks: int) -> ProduceRequest:
    topics: dict[bytes, TopicProduceData] = {}
    for batch in batches:
        topic = batch.book.topic
        data = topics.setdefault(topic.topic_id, TopicProduceData(name=topic.name, topic_id=topic.topic_id))
        data.partition_data.append(PartitionProduceData(index=batch.book.index, records=batch.content))
    return ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topic_data=list(topics.values()))


def version_for(client: SimClient, batches: Sequence[Batch]) -> int:
    """Topics that may be deleted are written to by id, so that late frames never reach another of the same name."""
    oldest = 3
    if any(batch.compression is Compression.ZSTD for batch in batches):
        oldest = FIRST_VERSION_WITH_ZSTD
    if not all(batch.book.topic.stays for batch in batches):
        oldest = FIRST_VERSION_WITH_TOPIC_IDS
    return client.version(ProduceRequest, oldest)


def base_offset_for(client: SimClient, batch: Batch, answer: ProduceResponse) -> tuple[ErrorCode, int]:
    """The error and the base offset in an answer, which must contain this batch's partition."""
    topic = batch.book.topic
    for found in answer.responses:
        if found.name == topic.name or found.topic_id == topic.topic_id:
            for partition in found.partition_responses:
                if partition.index == batch.book.index:
                    return ErrorCode(partition.error_code), partition.base_offset
    raise Violation("every partition of a request is answered", f"{client.name} asked for {batch.book}")


def allowed_errors(client: SimClient, book: PartitionBook) -> tuple[ErrorCode, ...]:
    too_late = (ErrorCode.REQUEST_TIMED_OUT,) if client.disk_may_be_late else ()
    return (GONE if book.topic.deletion_asked else ()) + too_late + client.excuses


def judge(client: SimClient, batch: Batch, error: ErrorCode, base_offset: int, allowed: tuple[ErrorCode, ...]) -> None:
    """Checks that the result of a batch is allowed, and records an acknowledgement in the ledger."""
    client.expect(error, f"a batch for {batch.book}", *allowed)
    if error is ErrorCode.NONE:
        client.scene.checker.acknowledged(
            batch.book,
            batch.era,
            batch.floor,
            base_offset,
            batch.values,
            first_try=batch.tries == 1,
            flushed=batch.must_be_flushed,
            by_all=batch.acks == ACKS_ALL,
        )
