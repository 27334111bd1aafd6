"""One split to Arrow record batches, in a task: a client of its own, one partition, from one offset up to another."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_quire.arrow import to_record_batch
from pyspark_quire.connect import connect
from pyspark_quire.errors import QuireError
from pyspark_quire.options import FETCH_MAX_BYTES, FETCH_MAX_WAIT_MS, ISOLATION_LEVEL, Options
from pyspark_quire.splits import Range
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.fetched import Fetched
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import InvalidRecords, check_crc
from quire.protocol.records.arrow_columns import ArrowColumns, ArrowGatherer


class Split(InputPartition):
    """What one task reads."""

    def __init__(self, part: Range) -> None:
        self.part = part


def read_split(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a split, in the order of their offsets, a few megabytes at a time."""
    if not isinstance(partition, Split):
        return  # Spark makes up a partition where there are none
    part = partition.part
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    gatherer = ArrowGatherer(part.start, part.end, with_headers="headers" in schema.names)
    with connect(options) as client:
        for fetched in _fetch(client, options, part):
            for columns in _gather(gatherer, fetched):
                yield to_record_batch(columns, part.place, arrow_schema)


def _fetch(client: BlockingClient, options: Options, part: Range) -> Iterator[Fetched]:
    config = ConsumerConfig(
        read_committed=options[ISOLATION_LEVEL] == "read_committed",
        max_wait_ms=options[FETCH_MAX_WAIT_MS],
        partition_max_bytes=options[FETCH_MAX_BYTES],
    )
    consumer = Consumer(client.cluster, config)
    client.run(consumer.assign({part.place: Start(offset=part.start)}))
    while consumer.positions[part.place] < part.end:
        client.loop.run_until(consumer.arrival())
        yield from consumer.poll()
    consumer.close()


def _gather(gatherer: ArrowGatherer, fetched: Fetched) -> Iterator[ArrowColumns]:
    try:
        for batch in fetched.visible_batches():
            check_crc(fetched.batches, batch)
            yield from gatherer.add(fetched.batches, batch)
        # What was fetched is let go before more is.
        yield from gatherer.flush()
    except InvalidRecords as error:
        raise QuireError(f"{fetched.place}: from offset {fetched.from_offset} on, {error.message}") from None
