"""Reads partitions to their current end, committed records only, for `quire dlq`."""

from collections.abc import Iterable, Iterator, Mapping

from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import Record

READ_COMMITTED = 1


def ends_of(client: BlockingClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The current end of committed records, including the marker of the last transaction."""
    found = client.run(list_offsets(client.cluster, dict.fromkeys(partitions, LATEST), isolation_level=READ_COMMITTED))
    return {partition: end.offset for partition, end in found.items()}


def read_committed(
    client: BlockingClient, ends: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, Record]]:
    """Every record from the beginning up to `ends`."""
    firsts = client.run(list_offsets(client.cluster, dict.fromkeys(ends, EARLIEST)))
    behind = {
        partition: Start(offset=first.offset) for partition, first in firsts.items() if first.offset < ends[partition]
    }
    consumer = Consumer(client.cluster, ConsumerConfig(read_committed=True))
    client.run(consumer.assign(behind))
    while any(offset < ends[partition] for partition, offset in consumer.positions.items()):
        client.loop.run_until(consumer.arrival())
        for fetched in consumer.poll():
            for record in fetched.records():
                if record.offset < ends[fetched.topic_partition]:
                    yield fetched.topic_partition, record
    consumer.close()
