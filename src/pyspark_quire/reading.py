"""One split to Arrow record batches, in a task: a client of its own, one partition, from one offset up to another."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_quire.connect import connect
from pyspark_quire.options import FETCH_MAX_BYTES, FETCH_MAX_WAIT_MS, ISOLATION_LEVEL, Options
from pyspark_quire.splits import Range
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.fetched import Fetched


class Split(InputPartition):
    """What one task reads."""

    def __init__(self, part: Range) -> None:
        self.part = part


def read_split(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, Split):
        return  # Spark makes up a partition where there are none
    part = partition.part
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    with connect(options) as client:
        consumer = Consumer(
            client.cluster,
            ConsumerConfig(
                read_committed=options[ISOLATION_LEVEL] == "read_committed",
                max_wait_ms=options[FETCH_MAX_WAIT_MS],
                partition_max_bytes=options[FETCH_MAX_BYTES],
            ),
        )
        client.run(consumer.assign({part.place: Start(offset=part.start)}))
        while consumer.positions[part.place] < part.end:
            client.loop.run_until(consumer.arrival())
            for fetched in consumer.poll():
                yield _to_arrow(fetched, part, arrow_schema)
        consumer.close()


def _to_arrow(fetched: Fetched, part: Range, schema: pa.Schema) -> pa.RecordBatch:
    rows = [
        {
            "key": record.key,
            "value": record.value,
            "topic": part.place.topic,
            "partition": part.place.partition,
            "offset": record.offset,
            "timestamp": record.timestamp * 1000,
            "timestampType": 0,
            "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
        }
        for record in fetched.records()
        if part.start <= record.offset < part.end
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)
