"""Producers as the leaders of partitions know them, by producer id: recent writers, and their open transactions.

`abort_transaction` ends a transaction in a single partition, without its coordinator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from quire.client.admin.results import error
from quire.client.cluster import Cluster
from quire.client.leaders import ask_leaders
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError
from quire.protocol.messages import describe_producers as producers
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.steps import Steps


@dataclass(slots=True, frozen=True)
class ActiveProducer:
    """A producer that has written to a partition recently, as the partition's leader knows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int  # of the last marker; -1 if there was none yet
    transaction_start_offset: int | None  # None without an open transaction


def describe_producers(
    cluster: Cluster, topic_partitions: Sequence[TopicPartition]
) -> Steps[dict[TopicPartition, list[ActiveProducer] | ApiError]]:
    """The producers with an id that write to these partitions."""

    def build(asked: list[TopicPartition]) -> producers.DescribeProducersRequest:
        topics: dict[str, list[int]] = {}
        for topic_partition in asked:
            topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
        return producers.DescribeProducersRequest(
            topics=[producers.TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        )

    yield from cluster.refresh(sorted({topic_partition.topic for topic_partition in topic_partitions}))
    return (
        yield from ask_leaders(cluster, topic_partitions, build, producers.DescribeProducersResponse, _active_producers)
    )


def _active_producers(
    response: producers.DescribeProducersResponse,
) -> dict[TopicPartition, list[ActiveProducer] | ApiError]:
    results: dict[TopicPartition, list[ActiveProducer] | ApiError] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            topic_partition = TopicPartition(topic.name, answer.partition_index)
            failed = error(
                answer.error_code, answer.error_message, f"the producers of {topic_partition} cannot be described"
            )
            results[topic_partition] = failed or [
                ActiveProducer(
                    found.producer_id,
                    found.producer_epoch,
                    found.last_sequence,
                    found.last_timestamp,
                    found.coordinator_epoch,
                    found.current_txn_start_offset if found.current_txn_start_offset >= 0 else None,
                )
                for found in sorted(answer.active_producers, key=lambda found: found.producer_id)
            ]
    return results


def abort_transaction(cluster: Cluster, topic_partition: TopicPartition, producer: ActiveProducer) -> Steps[None]:
    """Aborts a producer's open transaction in one partition, with the marker that its coordinator would write."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic_partition.topic, partition_indexes=[topic_partition.partition])],
        # Coordinator epochs begin at 0; a partition without a marker does not know the current one.
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )

    def read(response: WriteTxnMarkersResponse) -> dict[TopicPartition, ApiError | None]:
        return {
            TopicPartition(topic.name, part.partition_index): error(
                part.error_code, None, f"the transaction in {topic.name}-{part.partition_index} was not aborted"
            )
            for answer in response.markers
            for topic in answer.topics
            for part in topic.partitions
        }

    results = yield from ask_leaders(
        cluster,
        [topic_partition],
        lambda _: WriteTxnMarkersRequest(markers=[marker]),
        WriteTxnMarkersResponse,
        read,
        repeatable=False,
    )
    failed = results[topic_partition]
    if failed is not None:
        raise failed
