"""Everything that a broker serves, as Quire's own client reads it, from Apache Kafka or Quire.

Bytes are turned into text one to one (Latin-1), so that an answer can be kept as JSON.
"""

from typing import Any

from quire.client.admin.topics import describe_topics
from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError
from quire.protocol.records import Record

Partitions = dict[str, dict[str, Any]]


def everything(bootstrap: str) -> Partitions:
    """By `topic-partition`: its start and end, the last stable offset, all records, and which ones are committed."""
    with BlockingClient(bootstrap, client_id="everything", request_timeout_ms=30_000) as client:
        partitions = _topic_partitions(client)
        start, end, stable = (
            client.run(list_offsets(client.cluster, dict.fromkeys(partitions, at), isolation_level=isolation))
            for at, isolation in ((EARLIEST, 0), (LATEST, 0), (LATEST, 1))
        )
        records = _read(client, {partition: end[partition].offset for partition in partitions}, read_committed=False)
        committed = _read(
            client, {partition: stable[partition].offset for partition in partitions}, read_committed=True
        )
        return {
            str(partition): {
                "start": start[partition].offset,
                "end": end[partition].offset,
                "last_stable": stable[partition].offset,
                "records": [_shown(record) for record in records[partition]],
                "committed": [record.offset for record in committed[partition]],
            }
            for partition in partitions
        }


def _topic_partitions(client: BlockingClient) -> list[TopicPartition]:
    topic_partitions = []
    for name, topic in sorted(client.run(describe_topics(client.cluster)).items()):
        assert not isinstance(topic, ApiError), topic
        topic_partitions += [TopicPartition(name, partition) for partition in sorted(topic.partitions)]
    return topic_partitions


def _read(
    client: BlockingClient, ends: dict[TopicPartition, int], *, read_committed: bool
) -> dict[TopicPartition, list[Record]]:
    consumer = Consumer(client.cluster, ConsumerConfig(read_committed=read_committed, max_wait_ms=10))
    found: dict[TopicPartition, list[Record]] = {partition: [] for partition in ends}
    client.run(consumer.assign(dict.fromkeys((partition for partition, end in ends.items() if end), BEGINNING)))
    while any(offset < ends[partition] for partition, offset in consumer.positions.items()):
        client.loop.run_until(consumer.arrival())
        for fetched in consumer.poll():
            found[fetched.topic_partition] += fetched.records()
    return found


def _shown(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": as_text(record.key),
        "value": as_text(record.value),
        "headers": [[name, as_text(content)] for name, content in record.headers],
    }


def as_text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("latin-1")
