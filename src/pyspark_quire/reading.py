"""Reads the records of one task as Arrow record batches, a few megabytes at a time."""

from collections.abc import Generator, Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_quire.arrow import to_record_batch
from pyspark_quire.connect import borrow
from pyspark_quire.errors import QuireError
from pyspark_quire.fetching import fetch_ranges
from pyspark_quire.options import Options
from pyspark_quire.splits import SMALL_OFFSETS, Range
from quire.client.fetched import Fetched
from quire.client.shell_ahead import ahead
from quire.protocol.records import InvalidRecords, check_crc
from quire.protocol.records.arrow_columns import ArrowColumns, ArrowGatherer

AHEAD = 2
"""The maximum number of record batches that wait for Spark."""


class Split(InputPartition):
    """What one task reads: ranges of different partitions."""

    def __init__(self, parts: list[Range]) -> None:
        self.parts = parts


def read_split(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a split; those of each partition in the order of their offsets."""
    if not isinstance(partition, Split):
        return iter(())  # Spark adds an empty partition if there are none
    batches = _read(options, schema, partition)
    small = sum(part.size for part in partition.parts) <= SMALL_OFFSETS
    # While Spark processes a batch, the next one is fetched and decoded.
    return batches if small else ahead(batches, AHEAD)


def _read(options: Options, schema: StructType, partition: Split) -> Generator[pa.RecordBatch, None, None]:
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    with_headers = "headers" in schema.names
    gatherers = {
        part.topic_partition: ArrowGatherer(part.start, part.end, with_headers=with_headers) for part in partition.parts
    }
    assert len(gatherers) == len(partition.parts)
    with borrow(options) as client:
        for fetched in fetch_ranges(client, options, partition.parts):
            for columns in _gather(gatherers[fetched.topic_partition], fetched):
                yield to_record_batch(columns, fetched.topic_partition, arrow_schema)


def _gather(gatherer: ArrowGatherer, fetched: Fetched) -> Iterator[ArrowColumns]:
    # A fetch returns whole batches: the first may have records that were deleted, or returned before.
    gatherer.begin_at(fetched.from_offset)
    try:
        for batch in fetched.visible_batches():
            check_crc(fetched.batches, batch)
            yield from gatherer.add(fetched.batches, batch)
        # Frees what was fetched before it fetches more.
        yield from gatherer.flush()
    except InvalidRecords as error:
        raise QuireError(f"{fetched.topic_partition}: from offset {fetched.from_offset} on, {error.message}") from None
