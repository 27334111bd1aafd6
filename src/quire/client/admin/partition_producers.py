"""Producers as the leaders of partitions know them, by producer id: who has written lately, and where a transaction is
open. `abort_transaction` ends one in a single partition, without asking its coordinator.
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
    """A producer that has written to a partition not long ago, as the partition's leader knows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int  # of the last marker; -1 where there was none yet
    transaction_start_offset: int | None  # None without an open transaction


def describe_producers(
    cluster: Cluster, places: Sequence[TopicPartition]
) -> Steps[dict[TopicPartition, list[ActiveProducer] | ApiError]]:
    """Who writes to these partitions, of producers with an id."""

    def build(asked: list[TopicPartition]) -> producers.DescribeProducersRequest:
        topics: dict[str, list[int]] = {}
        for place in asked:
            topics.setdefault(place.topic, []).append(place.partition)
        return producers.DescribeProducersRequest(
            topics=[producers.TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        )

    yield from cluster.refresh(sorted({place.topic for place in places}))
    return (yield from ask_leaders(cluster, places, build, producers.DescribeProducersResponse, _active_producers))


def _active_producers(
    response: producers.DescribeProducersResponse,
) -> dict[TopicPartition, list[ActiveProducer] | ApiError]:
    results: dict[TopicPartition, list[ActiveProducer] | ApiError] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            place = TopicPartition(topic.name, answer.partition_index)
            failed = error(answer.error_code, answer.error_message, f"the producers of {place} could not be had")
            results[place] = failed or [
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


def abort_transaction(cluster: Cluster, place: TopicPartition, producer: ActiveProducer) -> Steps[None]:
    """Ends the transaction that a producer has open in one partition, as its coordinator would when it aborts it."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=place.topic, partition_indexes=[place.partition])],
        # A coordinator counts its epochs from 0; a partition that never saw a marker does not know which it is in.
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
        [place],
        lambda _: WriteTxnMarkersRequest(markers=[marker]),
        WriteTxnMarkersResponse,
        read,
        repeatable=False,
    )
    failed = results[place]
    if failed is not None:
        raise failed
