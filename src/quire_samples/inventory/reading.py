"""Reads ranges of topics, as a processor or a view does before it follows new records."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from quire.client.cluster import Cluster
from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.errors import ClientError
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.protocol.records import Record
from quire.steps import Steps
from quire_samples.inventory.events import Source, StockEvent, decode_event, decode_refusal_source

READ_COMMITTED = ConsumerConfig(read_committed=True, max_wait_ms=500)


class Stretch(NamedTuple):
    begin: int
    end: int


def whole(cluster: Cluster, topic_partitions: Iterable[TopicPartition]) -> Steps[dict[TopicPartition, Stretch]]:
    """From the first record to the last one that is committed now."""
    wanted = list(topic_partitions)
    first = yield from list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    last = yield from list_offsets(cluster, dict.fromkeys(wanted, LATEST), isolation_level=1)
    return {
        topic_partition: Stretch(first[topic_partition].offset, last[topic_partition].offset)
        for topic_partition in wanted
    }


def read(
    cluster: Cluster, stretches: Mapping[TopicPartition, Stretch], take: Callable[[TopicPartition, Record], None]
) -> Steps[None]:
    """Passes every committed record of these ranges to `take`, in the order of each partition."""
    ends = {
        topic_partition: stretch.end for topic_partition, stretch in stretches.items() if stretch.begin < stretch.end
    }
    if not ends:
        return
    consumer = Consumer(cluster, READ_COMMITTED)
    try:
        yield from consumer.assign(
            {topic_partition: Start(offset=stretches[topic_partition].begin) for topic_partition in ends}
        )
        while any(consumer.positions[topic_partition] < end for topic_partition, end in ends.items()):
            yield consumer.arrival()
            for fetched in consumer.poll():
                end = ends[fetched.topic_partition]
                for record in fetched.records():
                    if record.offset >= end:
                        break
                    take(fetched.topic_partition, record)
    finally:
        consumer.close()


def readable(topic_partition: TopicPartition, record: Record) -> StockEvent:
    """The event in a record; the error names the record's partition and offset."""
    try:
        return decode_event(record.value)
    except ValueError as error:
        raise ClientError(
            f"{topic_partition} has a record at offset {record.offset} that no processor wrote: {error}"
        ) from None


def refused_at(topic_partition: TopicPartition, record: Record) -> Source:
    """The partition and offset of the command that was refused."""
    try:
        return decode_refusal_source(record.value)
    except ValueError as error:
        raise ClientError(
            f"{topic_partition} has a record at offset {record.offset} that no processor wrote: {error}"
        ) from None
