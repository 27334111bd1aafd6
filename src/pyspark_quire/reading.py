"""One split to Arrow record batches, in a task: a client of its own, one partition, from one offset up to another."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_quire.arrow import to_record_batch
from pyspark_quire.bounds import Bounds, find_extent
from pyspark_quire.connect import borrow, run_patiently
from pyspark_quire.errors import QuireError
from pyspark_quire.loss import LossPolicy
from pyspark_quire.options import (
    FAIL_ON_DATA_LOSS,
    FETCH_MAX_BYTES,
    FETCH_MAX_WAIT_MS,
    ISOLATION_LEVEL,
    POLL_TIMEOUT_MS,
    Options,
)
from pyspark_quire.splits import Range
from quire.client.cluster import Cluster
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.errors import TimedOutError
from quire.client.fetched import Fetched
from quire.client.shell_blocking import BlockingClient
from quire.client.steps import Steps
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import InvalidRecords, check_crc
from quire.protocol.records.arrow_columns import ArrowColumns, ArrowGatherer
from quire.protocol.uuids import to_text

_GONE = (
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)


class Split(InputPartition):
    """What one task reads, one range after the other."""

    def __init__(self, parts: list[Range]) -> None:
        self.parts = parts


def read_split(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a split, in the order of their offsets, a few megabytes at a time."""
    if not isinstance(partition, Split):
        return  # Spark makes up a partition where there are none
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    with borrow(options) as client:
        for part in partition.parts:
            gatherer = ArrowGatherer(part.start, part.end, with_headers="headers" in schema.names)
            for fetched in _fetch_all(client, options, part):
                for columns in _gather(gatherer, fetched):
                    yield to_record_batch(columns, part.place, arrow_schema)


def _fetch_all(client: BlockingClient, options: Options, part: Range) -> Iterator[Fetched]:
    """Everything from the start to the end; what is not there any more is a matter for `LossPolicy`."""
    loss = LossPolicy(options[FAIL_ON_DATA_LOSS])
    position = part.start
    while position < part.end:
        try:
            for fetched in _fetch(client, options, part, position):
                position = fetched.next_offset
                yield fetched
        except ApiError as error:
            if error.code not in _GONE:
                raise QuireError(f"{part.place} cannot be read at offset {position}: {error}") from error
            position = _after_loss(client, options, part, position, loss)


def _fetch(client: BlockingClient, options: Options, part: Range, position: int) -> Iterator[Fetched]:
    config = ConsumerConfig(
        read_committed=options[ISOLATION_LEVEL] == "read_committed",
        max_wait_ms=options[FETCH_MAX_WAIT_MS],
        partition_max_bytes=options[FETCH_MAX_BYTES],
    )
    consumer = Consumer(client.cluster, config)
    patience_ms = options[POLL_TIMEOUT_MS]
    try:
        start, end = {part.place: Start(offset=position)}, {part.place: part.end}
        run_patiently(client, lambda _: consumer.assign(start, end), patience_ms)
        while position < part.end:
            try:
                client.loop.run_until(consumer.arrival(), patience_ms)
            except TimedOutError:
                raise QuireError(
                    f"{part.place} gave nothing within {patience_ms / 1000:g} s at offset {position}, "
                    f"although it should go on to {part.end}"
                ) from None
            taken = consumer.poll()
            # What came may be of a new topic with the old name; the client follows those.
            topic = client.cluster.metadata.topics.get(part.place.topic)
            if topic is None or to_text(topic.topic_id) != part.topic_id:
                raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID, "the topic was made anew")
            for fetched in taken:
                position = fetched.next_offset
                yield fetched
    finally:
        consumer.close()


def _after_loss(client: BlockingClient, options: Options, part: Range, position: int, loss: LossPolicy) -> int:
    """Where to go on after the offset was refused; raises unless the user wants to go on."""

    def ask(cluster: Cluster) -> Steps[tuple[str, Bounds] | None]:
        yield from cluster.refresh([part.place.topic])
        topic = cluster.metadata.topics.get(part.place.topic)
        if topic is None or part.place.partition not in topic.partitions:
            return None
        extent = yield from find_extent(cluster, options, [part.place])
        return to_text(topic.topic_id), extent[part.place]

    found = run_patiently(client, ask, options[POLL_TIMEOUT_MS])
    if found is None:
        loss.deleted(part.place, position)
        return part.end
    topic_id, bounds = found
    if topic_id != part.topic_id:
        loss.recreated(part.place, position, part.topic_id, topic_id)
        return part.end
    if position < bounds.earliest:
        loss.overtaken(part.place, position, min(bounds.earliest, part.end))
        return min(bounds.earliest, part.end)
    loss.beyond(part.place, part.end, bounds.latest)
    return part.end


def _gather(gatherer: ArrowGatherer, fetched: Fetched) -> Iterator[ArrowColumns]:
    # A fetch brings whole batches: the first may have records that were deleted, or handed out before.
    gatherer.begin_at(fetched.from_offset)
    try:
        for batch in fetched.visible_batches():
            check_crc(fetched.batches, batch)
            yield from gatherer.add(fetched.batches, batch)
        # What was fetched is let go before more is.
        yield from gatherer.flush()
    except InvalidRecords as error:
        raise QuireError(f"{fetched.place}: from offset {fetched.from_offset} on, {error.message}") from None
